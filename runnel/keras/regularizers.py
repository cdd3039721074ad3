"""``tf.keras.regularizers``: what the size of a variable adds to the objective."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.keras.by_identifier import find
from runnel.keras.custom_objects import known_too, serialize_keras_object
from runnel.ops.arithmetic import add, multiply
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import square
from runnel.ops.reduce_functions import reduce_sum


class Regularizer:
    """A function of a variable; subclasses define ``__call__``."""

    def __call__(self, x: Any) -> Any:
        return 0.0


class L1L2(Regularizer):
    """``l1`` times the sum of absolute values, and ``l2`` times the sum of squares (not halved)."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Tensor:
        total = convert_to_tensor(0.0, x.dtype.base_dtype)
        if self.l1:
            total = add(total, reduce_sum(multiply(absolute(x), self.l1)))
        if self.l2:
            total = add(total, reduce_sum(multiply(square(x), self.l2)))
        return total

    def get_config(self) -> dict[str, float]:
        """The arguments that make another of its kind."""
        return {"l1": self.l1, "l2": self.l2}


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 (TensorFlow's name)
    """``l`` times the sum of absolute values."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741 (TensorFlow's name)
    """``l`` times the sum of squares.

    Example:
        >>> tf.keras.layers.Dense(3, kernel_regularizer=tf.keras.regularizers.l2(1e-4))
    """
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Both."""
    return L1L2(l1=l1, l2=l2)


def get(identifier: Any) -> Any:
    """The regularizer that a name or a configuration stands for."""
    return find(identifier, {"L1L2": L1L2, "l1": l1, "l2": l2, "l1_l2": l1_l2}, "regularizer")


def serialize(regularizer: Any) -> Any:
    """What stands for a regularizer in a configuration."""
    return serialize_keras_object(regularizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The regularizer that a configuration stands for."""
    with known_too(custom_objects):
        return get(config)


__all__ = ["L1L2", "Regularizer", "deserialize", "get", "l1", "l1_l2", "l2", "serialize"]


def __dir__() -> list[str]:
    return __all__
