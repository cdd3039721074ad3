"""``tf.contrib``: parts of TensorFlow 1's contributed library that programs rely on."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Modules are loaded when they are first used."""
    if name.startswith("_"):
        raise AttributeError(f"module 'runnel.contrib' has no attribute {name!r}")
    try:
        return import_module(f"runnel.contrib.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"runnel.contrib.{name}":
            raise
        raise AttributeError(
            f"runnel has no tf.contrib.{name}; tf.contrib.rnn and tf.contrib.seq2seq exist"
        ) from None
