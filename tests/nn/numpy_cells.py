"""Recurrent cells in NumPy, written from their equations: the oracle of the tests here."""

from __future__ import annotations

from typing import Any

import numpy as np


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def basic(x, state, kernel, bias):
    output = np.tanh(np.concatenate([x, state], 1) @ kernel + bias)
    return output, output


def gru(x, state, gate_kernel, gate_bias, kernel, bias):
    gates = sigmoid(np.concatenate([x, state], 1) @ gate_kernel + gate_bias)
    reset, update = np.split(gates, 2, axis=1)
    candidate = np.tanh(np.concatenate([x, reset * state], 1) @ kernel + bias)
    output = update * state + (1 - update) * candidate
    return output, output


def lstm(x, state, kernel, bias, *, forget_bias=1.0, peepholes=None, clip=None, projection=None):
    c, h = state
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, axis=1)
    of, oi, oo = (0, 0, 0) if peepholes is None else peepholes
    c = sigmoid(f + forget_bias + of * c) * c + sigmoid(i + oi * c) * np.tanh(j)
    if clip is not None:
        c = np.clip(c, -clip, clip)
    h = sigmoid(o + oo * c) * np.tanh(c)
    if projection is not None:
        h = h @ projection
    return h, (c, h)


def layer_norm_lstm(x, state, kernel, gains, *, forget_bias=1.0):
    """``gains``: the (gamma, beta) of input, transform, forget, output, state."""
    c, h = state
    parts = np.split(np.concatenate([x, h], 1) @ kernel, 4, axis=1)
    i, j, f, o = (normalize(part, *gain) for part, gain in zip(parts, gains[:4], strict=True))
    c = normalize(c * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j), *gains[4])
    h = np.tanh(c) * sigmoid(o)
    return h, (c, h)


def normalize(x, gamma, beta):
    deviation = x - x.mean(1, keepdims=True)
    return gamma * deviation / np.sqrt((deviation**2).mean(1, keepdims=True) + 1e-12) + beta


def along(step, inputs, state, lengths=None):
    """Runs ``step`` along [batch, time, depth]; returns the outputs and the last state."""
    outputs = []
    for time in range(inputs.shape[1]):
        output, new_state = step(inputs[:, time], state)
        if lengths is not None:
            going = (time < np.asarray(lengths))[:, None]
            output = np.where(going, output, 0)
            new_state = _choose(going, new_state, state)
        outputs.append(output)
        state = new_state
    return np.stack(outputs, 1), state


def _choose(condition, one, other):
    if isinstance(one, tuple):
        return tuple(_choose(condition, a, b) for a, b in zip(one, other, strict=True))
    return np.where(condition, one, other)
