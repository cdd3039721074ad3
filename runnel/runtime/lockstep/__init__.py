"""A step that runs for many sets of inputs at once, operation by operation."""
