"""The vocabulary: one file for each family of operations."""
