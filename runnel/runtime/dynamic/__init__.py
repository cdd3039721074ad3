"""Control flow by pending counts: frames, iterations, dead values."""
