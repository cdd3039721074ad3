"""``tf.keras.utils``: labels, data sets by number, files, progress, custom objects."""

from __future__ import annotations

from typing import Any

from runnel.keras.array_utils import normalize, to_categorical
from runnel.keras.custom_objects import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    serialize_keras_object,
)
from runnel.keras.data_file import get_file
from runnel.keras.node import has_history, history_of
from runnel.keras.progress_bar import Progbar
from runnel.keras.sequence import Sequence


def get_source_inputs(tensor: Any, layer: Any = None, node_index: Any = None) -> list[Any]:
    """The inputs that ``tensor`` comes from."""
    found: dict[int, Any] = {}
    stack = [tensor]
    while stack:
        current = stack.pop()
        if not has_history(current):
            continue
        history = history_of(current)
        before = history.layer._inbound_nodes[history.node_index].input_tensors
        if not before:
            found[id(current)] = current
        stack.extend(reversed(before))
    return list(found.values())


__all__ = [
    "CustomObjectScope",
    "Progbar",
    "Sequence",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_file",
    "get_source_inputs",
    "normalize",
    "serialize_keras_object",
    "to_categorical",
]


def __dir__() -> list[str]:
    return __all__
