"""``tf_contextlib``: functions that ``with`` takes."""

from contextlib import contextmanager

__all__ = ["contextmanager"]
