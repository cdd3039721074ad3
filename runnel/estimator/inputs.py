"""``tf.estimator.inputs``: functions that make an ``input_fn``."""

from runnel.estimator.numpy_input import numpy_input_fn, pandas_input_fn

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def __dir__() -> list[str]:
    return __all__
