"""Benchmarks: runnel beside TensorFlow, JAX and PyTorch, interleaved in one run.

`python -m benchmarks.foundation` measures, `python -m benchmarks.report` writes the tables of the
README and of `docs/benchmarks.md` from what was measured.
"""
