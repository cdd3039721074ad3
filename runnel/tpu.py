"""``tf.tpu``: the parts of programs for TPUs that mean something without one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from runnel.graph.dtypes import bfloat16, float32
from runnel.ops.casting import cast
from runnel.train.optimizer import Optimizer
from runnel.variables.variable_scope import VariableScope, variable_scope

__all__ = ["CrossShardOptimizer", "bfloat16_scope"]


class CrossShardOptimizer(Optimizer):
    """``opt`` itself: there is one shard, whose gradients need no average.

    Example:
        >>> optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: Any = None,
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, var: Any, name: str) -> Any:
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> Any:
        return self._opt.get_slot_names()

    def variables(self) -> Any:
        return self._opt.variables()


def _stored_as_float32(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """A variable that is asked for as bfloat16: stored as float32, and cast where it is used."""
    if kwargs.get("dtype") != bfloat16:
        return getter(name, *args, **kwargs)
    return cast(getter(name, *args, **{**kwargs, "dtype": float32}), bfloat16)


@contextlib.contextmanager
def bfloat16_scope(name: str | None = None) -> Iterator[VariableScope]:
    """A scope in which variables of bfloat16 are stored as float32, and cast where they are used.

    Example:
        >>> with tf.tpu.bfloat16_scope():
        ...     weights = tf.get_variable("weights", [2, 2], tf.bfloat16)
    """
    with variable_scope(name or "", custom_getter=_stored_as_float32) as scope:
        yield scope


def __dir__() -> list[str]:
    return __all__
