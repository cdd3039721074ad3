"""A step as a list of nodes: pruned, with explicit reads, and the state that it touches."""
