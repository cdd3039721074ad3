"""Cuts a program into segments that compile as a whole."""
