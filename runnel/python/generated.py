"""``gen_nn_ops`` and its like: a function for each type of operation, under its generated name."""

from __future__ import annotations

import typing  # an operation has the name Any

from runnel.graph.registry import registered_ops
from runnel.raw_ops import function_of, generated_name

_types: dict[str, str] = {}
"""The types of operations by the names of their functions."""


def __getattr__(name: str) -> typing.Any:
    # Earlier versions of TensorFlow have an underscore before those that it uses itself.
    plain = name.lstrip("_")
    op_type = plain if plain[:1].isupper() else _type(plain)
    found = function_of(op_type) if op_type and not name.startswith("__") else None
    if found is None:
        raise AttributeError(f"runnel has no operation for {name!r}")
    return found


def _type(name: str) -> str | None:
    if name not in _types:
        _types.update({generated_name(op_type): op_type for op_type in registered_ops()})
    return _types.get(name)
