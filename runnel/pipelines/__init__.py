"""Pipelines of elements: what datasets are at run time."""
