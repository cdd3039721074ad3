"""The only mutable state: variables, plans in flight, sessions."""
