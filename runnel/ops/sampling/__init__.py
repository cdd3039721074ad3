"""Random numbers: counter-based bits, distributions, and the operations that draw."""
