"""Loss scales: factors that lift the gradients of float16 out of the range that rounds to zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from runnel.graph import dtypes
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.constants import constant
from runnel.ops.control import group, no_op
from runnel.ops.joining import stack
from runnel.ops.reduce_functions import reduce_all
from runnel.ops.rounding import is_finite
from runnel.ops.selection import where_v2
from runnel.variables.variable import Variable


class LossScale(ABC):
    """The factor by which a loss is multiplied; calling it gives its present value as a tensor."""

    @abstractmethod
    def __call__(self) -> Tensor:
        """The present factor, a float32 scalar."""

    @abstractmethod
    def update(self, grads: Iterable[Any]) -> tuple[Operation, Any]:
        """An operation that adapts the factor to gradients, and whether these are to be applied.

        The second is a boolean, or a boolean tensor that is read before the factor changes.
        """


class FixedLossScale(LossScale):
    """A factor that stays what it is.

    Example:
        >>> tf.Session().run(tf.train.experimental.FixedLossScale(128)())
        128.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        if not isinstance(loss_scale_value, int | float):
            raise ValueError(f"loss_scale_value must be a number, not {loss_scale_value!r}")
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1, but is {loss_scale_value}")
        self._value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """The factor."""
        return constant(self._value, dtypes.float32)

    def update(self, grads: Iterable[Any]) -> tuple[Operation, bool]:
        """Nothing to do; every gradient is applied."""
        return no_op(), True


class DynamicLossScale(LossScale):
    """A factor that halves when gradients overflow and doubles after a long time without.

    ``increment_period`` steps with finite gradients in a row multiply the factor by
    ``multiplier``; gradients that are not finite divide it, never below 1, and are not applied.

    Example:
        >>> scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=2**15)
    """

    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        if initial_loss_scale < 1:
            raise ValueError(f"initial_loss_scale must be at least 1, but is {initial_loss_scale}")
        if increment_period < 1:
            raise ValueError(f"increment_period must be at least 1, but is {increment_period}")
        if multiplier <= 1:
            raise ValueError(f"multiplier must be greater than 1, but is {multiplier}")
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current = Variable(
            self._initial_loss_scale,
            dtype=dtypes.float32,
            trainable=False,
            name="current_loss_scale",
        )
        self._good_steps = Variable(0, dtype=dtypes.int64, trainable=False, name="good_steps")

    @property
    def initial_loss_scale(self) -> float:
        """The first factor."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After how many steps with finite gradients the factor grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """By how much the factor grows or shrinks."""
        return self._multiplier

    def __call__(self) -> Tensor:
        """The present factor."""
        return self._current.read_value()

    def update(self, grads: Iterable[Any]) -> tuple[Operation, Tensor]:
        """Grow or shrink by whether all gradients are finite, which is the second result."""
        finite = all_finite(grads)
        scale, steps = self._current.read_value(), self._good_steps.read_value() + 1
        is_full = steps >= self._increment_period
        grown = scale * self._multiplier
        grown = where_v2(is_full & is_finite(grown), grown, scale)
        counted = where_v2(is_full, constant(0, dtypes.int64), steps)
        shrunk = maximum(scale / self._multiplier, 1.0)
        changed = group(
            self._current.assign(where_v2(finite, grown, shrunk), read_value=False),
            self._good_steps.assign(
                where_v2(finite, counted, constant(0, dtypes.int64)), read_value=False
            ),
        )
        return changed, finite


def all_finite(grads: Iterable[Any]) -> Tensor:
    """Whether no gradient has an infinite element or one that is not a number."""
    values = [g.values if isinstance(g, IndexedSlices) else g for g in grads if g is not None]
    if not values:
        return constant(True)
    return reduce_all(stack([reduce_all(is_finite(value)) for value in values]))


def as_loss_scale(loss_scale: Any) -> LossScale:
    """A loss scale from what users give: one, a number, or "dynamic"."""
    if isinstance(loss_scale, LossScale):
        return loss_scale
    if loss_scale == "dynamic":
        return DynamicLossScale()
    if isinstance(loss_scale, int | float) and not isinstance(loss_scale, bool):
        return FixedLossScale(loss_scale)
    raise ValueError(
        f"loss_scale must be a number, 'dynamic' or a LossScale, but is {loss_scale!r}"
    )
