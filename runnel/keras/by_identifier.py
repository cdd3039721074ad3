"""What programs give by name, as a configuration, or as the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.keras.custom_objects import get_custom_objects


def find(identifier: Any, table: Mapping[str, Any], what: str) -> Any:
    """What ``identifier`` (a name, a dict of a name and arguments, or the object) stands for.

    Example:
        >>> find("l2", {"l2": lambda l=0.01: l}, "regularizer")
        0.01
    """
    if identifier is None:
        return None
    arguments: dict[str, Any] = {}
    if isinstance(identifier, dict):
        identifier, arguments = identifier["class_name"], identifier.get("config", {})
    if isinstance(identifier, str):
        named = {**table, **get_custom_objects()}
        if identifier not in named:
            raise ValueError(
                f"Unknown {what} {identifier!r}; the names are {', '.join(sorted(table))}"
            )
        found = named[identifier]
        if identifier in table or isinstance(found, type):
            return found(**arguments)
        return found
    if isinstance(identifier, type):
        return identifier()
    if not callable(identifier):
        raise ValueError(f"The {what} must be a function, a name or a dict, not {identifier!r}")
    return identifier
