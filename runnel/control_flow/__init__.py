"""Conditionals and loops, built from the primitives of dynamic control flow."""
