"""A recurrent cell of fixed numbers, and the same in NumPy."""

from __future__ import annotations

import numpy as np

import runnel as tf

RNG = np.random.default_rng(7)
VOCABULARY, DEPTH, UNITS = 4, 3, 5
TABLE = RNG.normal(size=(VOCABULARY, DEPTH)).astype(np.float32)
_FROM_INPUT = RNG.normal(size=(DEPTH, UNITS)).astype(np.float32)
_FROM_STATE = RNG.normal(size=(UNITS, UNITS)).astype(np.float32)
_TO_LOGITS = 2 * RNG.normal(size=(UNITS, VOCABULARY)).astype(np.float32)


class TinyCell(tf.nn.rnn_cell.RNNCell):
    """``state' = tanh(x A + state B)``; the output is ``state' C``, one logit for each token."""

    state_size = UNITS
    output_size = VOCABULARY

    def call(self, inputs, state):
        state = tf.tanh(tf.matmul(inputs, _FROM_INPUT) + tf.matmul(state, _FROM_STATE))
        return tf.matmul(state, _TO_LOGITS), state


def step(x, state):
    """The same for vectors or matrices of NumPy: ``(logits, state)``."""
    state = np.tanh(x @ _FROM_INPUT.astype(np.float64) + state @ _FROM_STATE)
    return state @ _TO_LOGITS, state


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
