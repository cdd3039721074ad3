"""Which device runs what, at what cost, and what has to be sent."""
