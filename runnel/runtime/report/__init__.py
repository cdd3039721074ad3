"""Describes a step as it runs, in words and as a page."""
