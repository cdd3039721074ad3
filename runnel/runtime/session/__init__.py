"""Sessions: what users call, and the edges of ``run``."""
