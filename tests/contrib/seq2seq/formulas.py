"""Attention and cells written out in NumPy, and variables by name."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as tf
from tests.both_tiers import run_both


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def masked(memory, lengths):
    return memory * (np.arange(memory.shape[1]) < np.asarray(lengths)[:, None])[..., None]


def hidden(score, lengths, value=-np.inf):
    return np.where(np.arange(score.shape[1]) < np.asarray(lengths)[:, None], score, value)


def luong_score(query, keys, g=1.0):
    return g * np.einsum("bd,btd->bt", query, keys)


def bahdanau_score(query, keys, v, g=None, b=0.0):
    if g is not None:
        v = g * v / np.sqrt((v**2).sum())
    return (v * np.tanh(keys + query[:, None] + b)).sum(-1)


def gru_step(x, state, values, scope):
    """Cho et al. (2014), with the names of TensorFlow's variables."""
    joined = np.concatenate([x, state], 1)
    gates = joined @ values[f"{scope}/gates/kernel"] + values[f"{scope}/gates/bias"]
    reset, update = np.split(sigmoid(gates), 2, axis=1)
    joined = np.concatenate([x, reset * state], 1)
    sums = joined @ values[f"{scope}/candidate/kernel"] + values[f"{scope}/candidate/bias"]
    return update * state + (1 - update) * np.tanh(sums)


def randomized() -> Any:
    """Gives every variable, also those that begin as zeros or ones, random values."""
    rng = np.random.default_rng(3)
    return tf.group(
        *[
            tf.assign(v, rng.normal(0, 0.7, v.shape.as_list()).astype(v.dtype.as_numpy_dtype))
            for v in tf.global_variables()
        ]
    )


def run_with_variables(fetches: Any, feed_dict: Any = None) -> tuple[Any, dict[str, np.ndarray]]:
    """The fetches (in both tiers) and the values of all variables by name, in 64 bits."""
    variables = {v.op.name: v for v in tf.global_variables()}
    result, values = run_both(
        [fetches, variables], feed_dict, rtol=1e-4, atol=1e-5, init=randomized()
    )
    return result, {name: value.astype(np.float64) for name, value in values.items()}
