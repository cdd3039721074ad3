"""Segments as instructions; the interpreted tier: NumPy at once, Python for loops and branches."""
