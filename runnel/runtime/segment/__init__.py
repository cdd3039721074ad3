"""A segment in the tier that pays: its instructions, its state, its shapes."""
