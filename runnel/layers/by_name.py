"""Activations and initializers that are given by name, as ``tf.layers`` accepts them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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

_scaled = initializers.VarianceScaling

_INITIALIZERS: dict[str, Callable[..., Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": initializers.GlorotNormal,
    "glorot_uniform": initializers.GlorotUniform,
    "he_normal": partial(_scaled, 2.0, "fan_in", "truncated_normal"),
    "he_uniform": partial(_scaled, 2.0, "fan_in", "uniform"),
    "identity": initializers.Identity,
    "lecun_normal": partial(_scaled, 1.0, "fan_in", "truncated_normal"),
    "lecun_uniform": partial(_scaled, 1.0, "fan_in", "uniform"),
    # By name they have the narrow ranges of Keras, not those of tf.random_normal_initializer.
    "normal": partial(initializers.RandomNormal, 0.0, 0.05),
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": partial(initializers.RandomNormal, 0.0, 0.05),
    "random_uniform": partial(initializers.RandomUniform, -0.05, 0.05),
    "truncated_normal": partial(initializers.TruncatedNormal, 0.0, 0.05),
    "uniform": partial(initializers.RandomUniform, -0.05, 0.05),
    "variance_scaling": initializers.VarianceScaling,
    "zeros": initializers.Zeros,
}


def as_activation(given: Any) -> Callable[[Any], Any] | None:
    """The function that ``given`` (a function, a name or None) stands for; None for identity."""
    return _find(given, _ACTIVATIONS, "activation")


def as_initializer(given: Any) -> Any:
    """The initializer that ``given`` (an initializer, its class or name, or None) stands for."""
    if isinstance(given, type):
        return given()
    found = _find(given, _INITIALIZERS, "initializer")
    return found() if isinstance(given, str) else found


def _find(given: Any, table: dict[str, Any], what: str) -> Any:
    if not isinstance(given, str):
        if given is not None and not callable(given):
            raise ValueError(f"The {what} must be a function or a name, not {given!r}")
        return given
    if given not in table:
        raise ValueError(f"Unknown {what} {given!r}; the names are {', '.join(sorted(table))}")
    return table[given]
