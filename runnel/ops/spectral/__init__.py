"""Signals and their spectra."""
