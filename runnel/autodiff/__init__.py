"""Differentiation as a library over the graph."""
