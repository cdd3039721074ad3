"""``tf.keras.constraints``: what a variable is turned into after each update.

Optimizers apply the constraints of the variables that they update.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.keras.by_identifier import find
from runnel.keras.custom_objects import known_too, serialize_keras_object
from runnel.ops.arithmetic import add, multiply
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_value
from runnel.ops.comparison import greater_equal
from runnel.ops.division import truediv
from runnel.ops.elementwise import sqrt, square
from runnel.ops.reduce_functions import reduce_sum

_EPSILON = 1e-7


class Constraint:
    """A function of a variable's value; subclasses define ``__call__``."""

    def __call__(self, w: Any) -> Any:
        return w

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        return dict(vars(self))


class NonNeg(Constraint):
    """Negative elements become 0."""

    def __call__(self, w: Any) -> Tensor:
        return multiply(w, cast(greater_equal(w, 0.0), w.dtype.base_dtype))


def _norm(w: Any, axis: Any) -> Tensor:
    return sqrt(reduce_sum(square(w), axis=axis, keepdims=True))


class MaxNorm(Constraint):
    """Norms along ``axis`` are at most ``max_value``."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Tensor:
        norms = _norm(w, self.axis)
        desired = clip_by_value(norms, 0.0, float(self.max_value))
        return multiply(w, truediv(desired, add(norms, _EPSILON)))


class UnitNorm(Constraint):
    """Norms along ``axis`` are 1."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        return truediv(w, add(_norm(w, self.axis), _EPSILON))


class MinMaxNorm(Constraint):
    """Norms along ``axis`` move at ``rate`` into the range from ``min_value`` to ``max_value``."""

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Tensor:
        norms = _norm(w, self.axis)
        clipped = clip_by_value(norms, float(self.min_value), float(self.max_value))
        desired = add(multiply(clipped, self.rate), multiply(norms, 1 - self.rate))
        return multiply(w, truediv(desired, add(norms, _EPSILON)))


non_neg, max_norm, unit_norm, min_max_norm = NonNeg, MaxNorm, UnitNorm, MinMaxNorm

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "serialize",
    "unit_norm",
]


def get(identifier: Any) -> Any:
    """The constraint that a name or a configuration stands for."""
    return find(identifier, _TABLE, "constraint")


def serialize(constraint: Any) -> Any:
    """What stands for a constraint in a configuration."""
    return serialize_keras_object(constraint)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The constraint that a configuration stands for."""
    with known_too(custom_objects):
        return get(config)


_FUNCTIONS = ("deserialize", "get", "serialize")
_TABLE = {name: globals()[name] for name in __all__ if name not in _FUNCTIONS}


def __dir__() -> list[str]:
    return __all__
