"""Activations and initializers that are given by name, as ``tf.layers`` accepts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.ops import activations, elementwise, softmax
from runnel.variables import initializers

_ACTIVATIONS: dict[str, Callable[..., Any] | None] = {
    "elu": activations.elu,
    "exponential": elementwise.exp,
    "linear": None,
    "relu": activations.relu,
    "selu": activations.selu,
    "sigmoid": elementwise.sigmoid,
    "softmax": softmax.softmax,
    "softplus": activations.softplus,
    "softsign": activations.softsign,
    "swish": activations.swish,
    "tanh": elementwise.tanh,
}

_INITIALIZERS: dict[str, Callable[..., Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": initializers.GlorotNormal,
    "glorot_uniform": initializers.GlorotUniform,
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": initializers.RandomNormal,
    "random_uniform": initializers.RandomUniform,
    "truncated_normal": initializers.TruncatedNormal,
    "variance_scaling": initializers.VarianceScaling,
    "zeros": initializers.Zeros,
}


def as_activation(given: Any) -> Callable[[Any], Any] | None:
    """The function that ``given`` (a function, a name or None) stands for; None for identity."""
    return _find(given, _ACTIVATIONS, "activation")


def as_initializer(given: Any) -> Any:
    """The initializer that ``given`` (an initializer, its class or name, or None) stands for."""
    found = given if isinstance(given, type) else _find(given, _INITIALIZERS, "initializer")
    return found() if isinstance(found, type) else found


def _find(given: Any, table: dict[str, Any], what: str) -> Any:
    if not isinstance(given, str):
        if given is not None and not callable(given):
            raise ValueError(f"The {what} must be a function or a name, not {given!r}")
        return given
    if given not in table:
        raise ValueError(f"Unknown {what} {given!r}; the names are {', '.join(sorted(table))}")
    return table[given]
