"""What programs give by name, as a configuration, or as the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
        if identifier not in table:
            raise ValueError(
                f"Unknown {what} {identifier!r}; the names are {', '.join(sorted(table))}"
            )
        return table[identifier](**arguments)
    if isinstance(identifier, type):
        return identifier()
    if not callable(identifier):
        raise ValueError(f"The {what} must be a function, a name or a dict, not {identifier!r}")
    return identifier
