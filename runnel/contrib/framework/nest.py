"""``nest`` as programs know it from inside TensorFlow: also structures that begin alike.

A *shallow* structure is the upper part of a deeper one: its leaves stand for whatever is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runnel.control_flow import structure as _structure
from runnel.control_flow.structure import are_alike, keys_of, parts_of, with_parts
from runnel.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack_sequence_as,
)

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_dict_items",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "get_traverse_shallow_structure",
    "is_nested",
    "is_sequence",
    "is_sequence_or_composite",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "pack_sequence_as",
    "yield_flat_paths",
]

is_sequence = is_nested


def is_sequence_or_composite(seq: Any) -> bool:
    """True for a list, a tuple, a dict and their like, and for sparse tensors."""
    return _structure.is_nested(seq)


def assert_shallow_structure(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> None:
    """An error unless ``shallow_tree`` is the upper part of ``input_tree``."""
    if not _structure.is_nested(shallow_tree, expand_composites):
        return
    if not _structure.is_nested(input_tree, expand_composites):
        raise TypeError(
            f"Where the shallow structure has {shallow_tree!r}, the input has {input_tree!r}, "
            "which is not nested"
        )
    fits = isinstance(input_tree, type(shallow_tree)) or are_alike(shallow_tree, input_tree)
    if check_types and not fits:
        raise TypeError(
            f"The shallow structure has a {type(shallow_tree).__name__} where the input has a "
            f"{type(input_tree).__name__}"
        )
    ours, theirs = keys_of(shallow_tree), keys_of(input_tree)
    both_dicts = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if len(ours) != len(theirs) or (both_dicts and ours != theirs):
        raise ValueError(f"The shallow structure has the parts {ours}, the input has {theirs}")
    for shallow, deep in zip(parts_of(shallow_tree), parts_of(input_tree), strict=True):
        assert_shallow_structure(shallow, deep, check_types, expand_composites)


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """What is in ``input_tree`` where ``shallow_tree`` has leaves.

    Example:
        >>> flatten_up_to([0, 0], [[1, 2], 3])
        [[1, 2], 3]
    """
    found = flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites)
    return [value for _, value in found]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """Where ``shallow_tree`` has leaves: the way there, a tuple, and what ``input_tree`` has."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_up_to(shallow_tree, input_tree, expand_composites))


def _up_to(shallow_tree: Any, input_tree: Any, composites: bool) -> Iterator[tuple[Any, Any]]:
    if not _structure.is_nested(shallow_tree, composites):
        yield (), input_tree
        return
    keys, shallows, deeps = keys_of(shallow_tree), parts_of(shallow_tree), parts_of(input_tree)
    for key, shallow, deep in zip(keys, shallows, deeps, strict=True):
        for path, value in _up_to(shallow, deep, composites):
            yield (key, *path), value


def map_structure_up_to(
    shallow_tree: Any,
    func: Callable[..., Any],
    *inputs: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """``func`` of what is in each input where ``shallow_tree`` has leaves, in its form."""

    def without_path(path: Any, *values: Any) -> Any:
        return func(*values)

    return map_structure_with_tuple_paths_up_to(
        shallow_tree,
        without_path,
        *inputs,
        check_types=check_types,
        expand_composites=expand_composites,
    )


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any,
    func: Callable[..., Any],
    *inputs: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """``func`` of the way to each leaf of ``shallow_tree``, a tuple, and of each input there."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    for tree in inputs:
        assert_shallow_structure(shallow_tree, tree, check_types, expand_composites)
    paths = yield_flat_paths(shallow_tree, expand_composites)
    found = [flatten_up_to(shallow_tree, tree, check_types, expand_composites) for tree in inputs]
    made = [func(*values) for values in zip(paths, *found, strict=True)]
    return pack_sequence_as(shallow_tree, made, expand_composites)


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """The upper part of ``structure`` into which ``traverse_fn`` allows to look.

    It returns True or False for something nested, or that for each part of it. Leaves are True
    where there was something nested to look into, else False.
    """

    def upper(part: Any) -> Any:
        return get_traverse_shallow_structure(traverse_fn, part, expand_composites)

    looks = traverse_fn(structure)
    if not _structure.is_nested(structure, expand_composites):
        if not isinstance(looks, bool):
            raise TypeError(f"traverse_fn returned {looks!r} for a leaf; it must be True or False")
        return looks
    if isinstance(looks, bool):
        return (
            with_parts(structure, [upper(part) for part in parts_of(structure)]) if looks else False
        )
    assert_shallow_structure(looks, structure, expand_composites=expand_composites)
    parts = []
    for allowed, part in zip(parts_of(looks), parts_of(structure), strict=True):
        if not isinstance(allowed, bool):
            raise TypeError(f"traverse_fn returned {looks!r}; its leaves must be True or False")
        parts.append(upper(part) if allowed else False)
    return with_parts(structure, parts)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict whose keys, and values, may be nested, as one of single keys and values."""
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value]) if not is_nested(key) else (flatten(key), flatten(value))
        if len(keys) != len(values):
            raise ValueError(f"The key {key!r} has {len(keys)} parts, its value {len(values)}")
        for one, its in zip(keys, values, strict=True):
            if one in flat:
                raise ValueError(f"The key {one!r} is not unique: it is also a part of {key!r}")
            flat[one] = its
    return flat


def yield_flat_paths(structure: Any, expand_composites: bool = False) -> Iterator[Any]:
    """The way to each leaf: a tuple of keys and positions."""
    return (path for path, _ in _up_to(structure, structure, expand_composites))


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The way to each leaf, a tuple of keys and positions, and the leaf."""
    return list(_up_to(structure, structure, expand_composites))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[Any]:
    """The way to each leaf, keys and positions with ``separator`` between them, and the leaf."""
    found = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in found]


def map_structure_with_tuple_paths(
    func: Callable[..., Any],
    *structure: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """``func`` of the way to each leaf, a tuple, and of the leaves there."""
    if not structure:
        raise ValueError("Must provide at least one structure")
    first = structure[0]
    for other in structure[1:]:
        assert_same_structure(first, other, check_types, expand_composites)
    leaves = (flatten(one, expand_composites) for one in structure)
    rows = zip(yield_flat_paths(first, expand_composites), *leaves, strict=True)
    return pack_sequence_as(first, [func(*row) for row in rows], expand_composites)


def map_structure_with_paths(
    func: Callable[..., Any],
    *structure: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """``func`` of the way to each leaf, a text such as ``a/0``, and of the leaves there."""

    def by_text(path: Any, *leaves: Any) -> Any:
        return func("/".join(map(str, path)), *leaves)

    return map_structure_with_tuple_paths(
        by_text, *structure, check_types=check_types, expand_composites=expand_composites
    )


def __dir__() -> list[str]:
    return __all__
