"""``tf.compat.v1``: runnel itself, which is TensorFlow 1."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("runnel"), name)


def __dir__() -> list[str]:
    return dir(import_module("runnel"))
