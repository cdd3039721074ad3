"""Loops and conditionals: found among the primitives, raised to nodes that hold programs."""
