"""The interpreted tier: NumPy at once, and Python written for loops and conditionals."""
