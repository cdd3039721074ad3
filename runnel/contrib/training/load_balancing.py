"""Which parameter server holds a variable."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any


class RandomStrategy:
    """Parameter servers by chance, the same in every process with the same seed."""

    def __init__(self, num_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_tasks
        self._random = random.Random(seed)

    def __call__(self, op: Any) -> int:
        return self._random.randrange(self._num_tasks)


class GreedyLoadBalancingStrategy:
    """The parameter server with the least load so far, as ``load_fn(op)`` counts it.

    Example:
        >>> strategy = tf.contrib.training.GreedyLoadBalancingStrategy(
        ...     2, tf.contrib.training.byte_size_load_fn)
        >>> setter = tf.train.replica_device_setter(2, ps_strategy=strategy)
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        task = min(range(len(self._loads)), key=self._loads.__getitem__)
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Any) -> float:
    """The bytes of the variable that ``op`` makes; its shape must be known."""
    dtype, shape = op.get_attr("dtype"), op.get_attr("shape")
    dims = getattr(shape, "dims", None)
    if dims is None or any(getattr(dim, "value", dim) is None for dim in dims):
        raise ValueError(f"The size of {op.name!r} is not known: its shape is {shape}")
    return float(prod(int(dim) for dim in shape.as_list()) * dtype.size)
