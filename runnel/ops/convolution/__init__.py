"""Convolutions and pooling: the operations, and the ways to compute them."""
