"""Programs that are run under runnel and under TensorFlow, and must give the same.

A program is written once, as a function of the library (``tf``). Tables of them stand in the
other modules of this folder; ``tools/record_tensorflow.py`` runs them under TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A program, and how closely two libraries agree on it.

    ``build(tf, *placeholders)`` returns a list of steps, each a list of what it fetches, which
    are run in order after the variables are initialised. ``inputs`` are fed in every step.
    """

    build: Callable[..., Sequence[Sequence[Any]]]
    inputs: tuple[np.ndarray, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-6


def values(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Numbers between ``low`` and ``high``; the same for every version of NumPy."""
    # The stream of RandomState is frozen, unlike that of default_rng.
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, low: int = 0, high: int = 10, seed: int = 0) -> np.ndarray:
    """Integers from ``low`` up to, not including, ``high``."""
    return np.random.RandomState(seed).randint(low, high, shape).astype(np.int32)


def op(
    build: Callable[..., Any],
    *inputs: Any,
    gradient: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> Program:
    """One step that fetches what ``build(tf, *placeholders)`` returns, and its gradients.

    The gradients are those of a fixed weighting of the floating-point outputs with respect to
    the floating-point inputs; ``gradient=False`` leaves them out.
    """

    def program(tf: Any, *placeholders: Any) -> list[list[Any]]:
        result = build(tf, *placeholders)
        outputs = list(result) if isinstance(result, list | tuple) else [result]
        ys = [y for y in outputs if y.dtype.is_floating] if gradient else []
        xs = [x for x in placeholders if x.dtype.is_floating]
        if ys and xs:
            outputs += gradients(tf, ys, xs)
        return [outputs]

    arrays = tuple(np.asarray(value) for value in inputs)
    return Program(program, arrays, rtol, atol)


def gradients(tf: Any, ys: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """The gradients that exist, of ``ys`` weighted by fixed numbers, made dense."""
    weights = []
    for number, y in enumerate(ys):
        dims = y.shape.as_list()
        weights.append(tf.cast(values(*dims, low=0.5, high=1.5, seed=number), y.dtype))
    found = tf.gradients(list(ys), list(xs), grad_ys=weights)
    return [tf.convert_to_tensor(grad) for grad in found if grad is not None]
