"""``tensorflow.examples.tutorials.mnist``."""

from runnel.examples.tutorials.mnist import input_data

__all__ = ["input_data"]
