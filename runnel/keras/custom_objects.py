"""The classes and functions of a program that configurations name: ``tf.keras.utils``' registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_known: dict[str, Any] = {}


def get_custom_objects() -> dict[str, Any]:
    """The registry itself: a dict from names to classes and functions, which a program may fill.

    Example:
        >>> tf.keras.utils.get_custom_objects()["Scale"] = Scale
    """
    return _known


class CustomObjectScope:
    """Inside the block, configurations may name the given classes and functions.

    Example:
        >>> with tf.keras.utils.CustomObjectScope({"Scale": Scale}):
        ...     model = tf.keras.models.model_from_json(text)
    """

    def __init__(self, *args: Mapping[str, Any]) -> None:
        self._given = args
        self._before: dict[str, Any] | None = None

    def __enter__(self) -> CustomObjectScope:
        self._before = dict(_known)
        for objects in self._given:
            _known.update(objects)
        return self

    def __exit__(self, *args: Any) -> None:
        _known.clear()
        _known.update(self._before or {})


def custom_object_scope(*args: Mapping[str, Any]) -> CustomObjectScope:
    """The same as :class:`CustomObjectScope`."""
    return CustomObjectScope(*args)


@contextmanager
def known_too(objects: Mapping[str, Any] | None) -> Iterator[None]:
    """The objects that a function was given as ``custom_objects`` are known inside the block."""
    with CustomObjectScope(objects or {}):
        yield


def serialize_keras_object(instance: Any) -> Any:
    """What stands for ``instance`` in a configuration: a dict of class and arguments, or a name.

    Example:
        >>> tf.keras.utils.serialize_keras_object(tf.keras.layers.Dense(3))["class_name"]
        'Dense'
    """
    if instance is None or isinstance(instance, str | dict):
        return instance
    if not isinstance(instance, type) and hasattr(instance, "get_config"):
        config = instance.get_config()
        return {"class_name": type(instance).__name__, "config": config}
    name = getattr(instance, "__name__", None)
    if name is None:
        raise ValueError(
            f"{instance!r} has neither a get_config method nor a name that could stand for it"
        )
    return name


def deserialize_keras_object(
    identifier: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """What a name or a dict of class and arguments stands for."""
    if identifier is None:
        return None
    table = {**(module_objects or {}), **_known, **(custom_objects or {})}
    if isinstance(identifier, str):
        found = _named(identifier, table, printable_module_name)
        return found() if isinstance(found, type) else found
    if isinstance(identifier, dict):
        if "class_name" not in identifier or "config" not in identifier:
            raise ValueError(f"Improper config format: {identifier!r}")
        found = _named(identifier["class_name"], table, printable_module_name)
        config = identifier["config"]
        with known_too(custom_objects):
            if hasattr(found, "from_config"):
                return found.from_config(dict(config) if isinstance(config, dict) else config)
            return found(**config)
    if callable(identifier):
        return identifier
    raise ValueError(f"{identifier!r} stands for no {printable_module_name}")


def _named(name: str, table: Mapping[str, Any], what: str) -> Any:
    if name not in table:
        raise ValueError(
            f"Unknown {what}: {name}. If it is your own, name it in custom_objects or in a "
            "tf.keras.utils.CustomObjectScope"
        )
    return table[name]
