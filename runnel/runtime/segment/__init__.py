"""Runs a segment in the tier that pays, for each of the shapes that it meets."""
