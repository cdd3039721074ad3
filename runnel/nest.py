"""``tf.nest``: nested structures of lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow import structure as _structure
from runnel.control_flow.structure import flatten as _flatten
from runnel.control_flow.structure import is_nested, pack_as

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of ``structure``, from left to right; dicts in the order of their keys."""
    return _flatten(structure)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """``flat_sequence`` in the form of ``structure``."""
    leaves = list(flat_sequence)
    count = len(_flatten(structure))
    if len(leaves) != count:
        raise ValueError(f"The structure has {count} leaves, but there are {len(leaves)} values")
    return pack_as(structure, leaves)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """An error that shows where two structures differ."""
    _structure.require_same(nest1, nest2, ("nest1", "nest2"))


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """``func`` of the leaves of structures of one form, in that form.

    Example:
        >>> tf.nest.map_structure(lambda x: x + 1, {"a": 1, "b": [2]})
        {'a': 2, 'b': [3]}
    """
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    leaves = zip(*map(_flatten, structure), strict=True)
    return pack_as(structure[0], [func(*values) for values in leaves])


def __dir__() -> list[str]:
    return __all__
