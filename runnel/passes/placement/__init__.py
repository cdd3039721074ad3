"""Decides which device runs what, at what cost, and what must be sent."""
