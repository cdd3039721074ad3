"""The same weights in every session: values drawn for each variable from its name."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import runnel as tf
from tests.both_tiers import run_both


def weights(variables: Any = None) -> dict[str, np.ndarray]:
    """A value for each variable, by the end of its name after the last scope of a cell."""
    found = tf.global_variables() if variables is None else variables
    return {v.op.name: _draw(v) for v in found}


def run_with_weights(fetches: Any, feed_dict: Any = None, **options: Any) -> Any:
    """The fetches in both tiers, after every variable got its value of :func:`weights`."""
    values = weights()
    loads = [tf.assign(v, values[v.op.name]) for v in tf.global_variables()]
    return run_both(fetches, feed_dict, init=tf.group(*loads), **options)


def _draw(variable: Any) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(variable.op.name.encode()))
    values = rng.uniform(-0.8, 0.8, variable.shape.as_list())
    return values.astype(variable.dtype.as_numpy_dtype)
