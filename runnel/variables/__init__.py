"""Variables: mutable state as Python objects, their scopes, initial values and partitions."""
