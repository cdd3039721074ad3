"""``tf.keras.activations``: functions that layers apply to their outputs, by name too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.keras.custom_objects import get_custom_objects, serialize_keras_object
from runnel.ops import activations as _activations
from runnel.ops.activations import selu, softplus, softsign
from runnel.ops.arithmetic import add, maximum, minimum, multiply, subtract
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_value
from runnel.ops.comparison import greater
from runnel.ops.elementwise import exp as exponential
from runnel.ops.elementwise import expm1, sigmoid, tanh
from runnel.ops.selection import where
from runnel.ops.softmax import softmax as softmax_of


def linear(x: Any) -> Any:
    """``x``."""
    return x


def relu(
    x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0
) -> Tensor:
    """``x`` above ``threshold`` and up to ``max_value``; below, ``alpha`` times the distance.

    Example:
        >>> tf.keras.activations.relu(tf.constant([-1.0, 2.0]), alpha=0.1)  # [-0.1, 2]
    """
    x = convert_to_tensor(x)
    if not alpha and not threshold:
        if max_value is None:
            return _activations.relu(x)
        return clip_by_value(x, 0.0, float(max_value))
    if threshold:
        above = multiply(x, cast(greater(x, float(threshold)), x.dtype.base_dtype))
    else:
        above = _activations.relu(x)
    if max_value is not None:
        above = minimum(maximum(above, 0.0), float(max_value))
    if not alpha:
        return above
    return subtract(above, multiply(alpha, _activations.relu(subtract(float(threshold), x))))


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    if alpha == 1:
        return _activations.elu(x)
    x = convert_to_tensor(x)
    # Of the positive elements alone: the exponential of a large one would spoil the gradient.
    return where(greater(x, 0.0), x, multiply(alpha, expm1(minimum(x, 0.0))))


def hard_sigmoid(x: Any) -> Tensor:
    """``0.2 * x + 0.5`` between 0 and 1."""
    return clip_by_value(add(multiply(x, 0.2), 0.5), 0.0, 1.0)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Exponentials that add up to 1 along ``axis``."""
    return softmax_of(x, axis=axis)


__all__ = [
    "deserialize",
    "elu",
    "exponential",
    "get",
    "hard_sigmoid",
    "linear",
    "relu",
    "selu",
    "serialize",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]
_NOT_NAMED = ("deserialize", "get", "serialize")


def get(identifier: Any) -> Callable[..., Any]:
    """The function that a name, a function or None stands for."""
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        return deserialize(identifier)
    if callable(identifier):
        return identifier  # type: ignore[no-any-return]
    raise ValueError(f"The activation must be a function or a name, not {identifier!r}")


def serialize(activation: Any) -> Any:
    """The name that stands for an activation."""
    return serialize_keras_object(activation)


def deserialize(name: str, custom_objects: Any = None) -> Callable[..., Any]:
    """The activation that a name stands for."""
    named: dict[str, Callable[..., Any]] = {**_TABLE, **get_custom_objects()}
    named.update(custom_objects or {})
    if name not in named:
        raise ValueError(f"Unknown activation {name!r}; the names are {', '.join(sorted(_TABLE))}")
    return named[name]


_TABLE: dict[str, Callable[..., Any]] = {
    name: globals()[name] for name in __all__ if name not in _NOT_NAMED
}


def __dir__() -> list[str]:
    return __all__
