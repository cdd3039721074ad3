"""Estimators whose models are made already: linear ones, deep ones, and both together."""
