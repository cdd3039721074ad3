"""``tf.nest``: nested structures of lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow import structure as _structure
from runnel.control_flow.structure import flatten as _flatten
from runnel.control_flow.structure import pack_as

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
]


def is_nested(seq: Any) -> bool:
    """True for a list, a tuple, a dict and their like."""
    return _structure.is_nested(seq, composites=False)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of ``structure``, from left to right; dicts in the order of their keys.

    With ``expand_composites`` sparse tensors are not leaves, but their parts are.
    """
    return _flatten(structure, expand_composites)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """``flat_sequence`` in the form of ``structure``."""
    if not is_nested(flat_sequence):
        raise TypeError(f"flat_sequence must be a sequence, not {flat_sequence!r}")
    leaves = list(flat_sequence)
    count = len(_flatten(structure, expand_composites))
    if len(leaves) != count:
        raise ValueError(f"The structure has {count} leaves, but there are {len(leaves)} values")
    return pack_as(structure, leaves, expand_composites)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """An error that shows where two structures differ; without ``check_types``, but for types."""
    _structure.require_same(nest1, nest2, ("nest1", "nest2"), check_types, expand_composites)


def map_structure(
    func: Callable[..., Any],
    *structure: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """``func`` of the leaves of structures of one form, in that form.

    Example:
        >>> tf.nest.map_structure(lambda x: x + 1, {"a": 1, "b": [2]})
        {'a': 2, 'b': [3]}
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    leaves = zip(*(_flatten(one, expand_composites) for one in structure), strict=True)
    return pack_as(structure[0], [func(*values) for values in leaves], expand_composites)


def __dir__() -> list[str]:
    return __all__
