"""A step as it is run, in words and as a page."""
