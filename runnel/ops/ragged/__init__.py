"""Tensors whose rows have different lengths."""
