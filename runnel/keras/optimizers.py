"""``tf.keras.optimizers``: what changes the variables of a model."""

from __future__ import annotations

from typing import Any

from runnel.keras import learning_rate_schedules as schedules
from runnel.keras.custom_objects import deserialize_keras_object, serialize_keras_object
from runnel.keras.optimizer import Optimizer
from runnel.keras.optimizer_formulas import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    Ftrl,
    Nadam,
    RMSprop,
)
from runnel.keras.train_optimizer import TFOptimizer
from runnel.train.optimizer import Optimizer as TrainOptimizer

_CLASSES = (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam, Ftrl)
_TABLE = {cls.__name__.lower(): cls for cls in _CLASSES}


def serialize(optimizer: Any) -> Any:
    """The configuration of an optimizer."""
    return serialize_keras_object(optimizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The optimizer that a configuration describes."""
    name = config["class_name"]
    if name.lower() in _TABLE:
        config = {**config, "class_name": name.lower()}
    return deserialize_keras_object(config, _TABLE, custom_objects, "optimizer")


def get(identifier: Any) -> Any:
    """The optimizer that a name, a configuration or an optimizer stands for.

    Example:
        >>> tf.keras.optimizers.get("adam").get_config()["learning_rate"]
        0.001
    """
    if isinstance(identifier, Optimizer | TFOptimizer):
        return identifier
    if isinstance(identifier, TrainOptimizer):
        return TFOptimizer(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if hasattr(identifier, "get_updates"):
        return identifier
    raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}")


__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "SGD",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]


def __dir__() -> list[str]:
    return __all__
