"""``data.util.nest``: structures of elements. There a list is no structure: it becomes a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.framework import nest
from runnel.data.element_structure import flatten, map_leaves, pack_as

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "is_nested",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
]


class _Leaf:
    """A leaf into which nobody looks, though it may be a list."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _closed(structure: Any) -> Any:
    return map_leaves(_Leaf, structure)


def _opened(structure: Any) -> Any:
    return map_leaves(lambda leaf: leaf.value, structure)


def is_nested(seq: Any) -> bool:
    """True for a tuple and a dict."""
    return isinstance(seq, tuple | dict)


is_sequence = is_nested


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """``flat_sequence`` in the form of ``structure``."""
    leaves, count = list(flat_sequence), len(flatten(structure))
    if len(leaves) != count:
        raise ValueError(f"The structure has {count} leaves, but there are {len(leaves)} values")
    return pack_as(structure, leaves)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """An error that shows where two structures differ."""
    nest.assert_same_structure(_closed(nest1), _closed(nest2), check_types)


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """``func`` of the leaves of structures of one form, in that form."""

    def of_values(*leaves: _Leaf) -> _Leaf:
        return _Leaf(func(*(leaf.value for leaf in leaves)))

    return _opened(nest.map_structure(of_values, *map(_closed, structure), check_types=check_types))


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """An error unless ``shallow_tree`` is the upper part of ``input_tree``."""
    nest.assert_shallow_structure(_closed(shallow_tree), _closed(input_tree), check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """What is in ``input_tree`` where ``shallow_tree`` has leaves."""
    return [_opened(v) for v in nest.flatten_up_to(_closed(shallow_tree), _closed(input_tree))]


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """``func`` of what is in each input where ``shallow_tree`` has leaves, in its form."""

    def of_values(*parts: Any) -> _Leaf:
        return _Leaf(func(*map(_opened, parts)))

    return _opened(
        nest.map_structure_up_to(_closed(shallow_tree), of_values, *map(_closed, inputs))
    )
