"""``tf.keras.initializers``: the first values of variables, with Keras' own defaults."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import float32
from runnel.keras.by_identifier import find
from runnel.keras.custom_objects import known_too, serialize_keras_object
from runnel.variables import initializers as of_variables
from runnel.variables.initializers import (
    Constant,
    GlorotNormal,
    GlorotUniform,
    Identity,
    Initializer,
    Ones,
    Orthogonal,
    VarianceScaling,
    Zeros,
)


class RandomNormal(of_variables.RandomNormal):
    """Normal values, with a deviation of 0.05 unless given."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class TruncatedNormal(of_variables.TruncatedNormal):
    """Normal values within two deviations, of 0.05 unless given."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(of_variables.RandomUniform):
    """Uniform values, from -0.05 to 0.05 unless given."""

    def __init__(
        self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


def _scaled(scale: float, mode: str, distribution: str) -> Any:
    def initializer(seed: int | None = None) -> VarianceScaling:
        return VarianceScaling(scale, mode, distribution, seed)

    return initializer


glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
he_normal = _scaled(2.0, "fan_in", "truncated_normal")
he_uniform = _scaled(2.0, "fan_in", "uniform")
lecun_normal = _scaled(1.0, "fan_in", "truncated_normal")
lecun_uniform = _scaled(1.0, "fan_in", "uniform")

constant, identity, ones, orthogonal, zeros = Constant, Identity, Ones, Orthogonal, Zeros
normal = random_normal = RandomNormal
uniform = random_uniform = RandomUniform
truncated_normal = TruncatedNormal

__all__ = [
    "Constant",
    "Identity",
    "Initializer",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "deserialize",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "serialize",
    "truncated_normal",
    "uniform",
    "zeros",
]


def get(identifier: Any) -> Any:
    """The initializer that a name, a class or a configuration stands for."""
    return find(identifier, _TABLE, "initializer")


def serialize(initializer: Any) -> Any:
    """What stands for an initializer in a configuration."""
    return serialize_keras_object(initializer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The initializer that a configuration stands for."""
    with known_too(custom_objects):
        return get(config)


_FUNCTIONS = ("deserialize", "get", "serialize")
_TABLE = {name: globals()[name] for name in __all__ if name not in ("Initializer", *_FUNCTIONS)}
_TABLE.update(GlorotNormal=GlorotNormal, GlorotUniform=GlorotUniform)


def __dir__() -> list[str]:
    return __all__
