"""``tf.keras.models``: models, and how they are written, read and copied."""

from __future__ import annotations

from runnel.keras.model import Model
from runnel.keras.saved_models import (
    clone_model,
    load_model,
    model_from_config,
    model_from_json,
    model_from_yaml,
    save_model,
)
from runnel.keras.sequential import Sequential

__all__ = [
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_config",
    "model_from_json",
    "model_from_yaml",
    "save_model",
]


def __dir__() -> list[str]:
    return __all__
