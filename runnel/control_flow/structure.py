"""Nested structures of tensors: lists, tuples, named tuples and dicts (in the order of keys)."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from functools import lru_cache
from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.sparse_tensor import SparseTensor, sparse_parts

_LEAVES = (str, bytes, bytearray, memoryview, array)
"""Sequences that nobody means as structures."""


def is_nested(value: Any, composites: bool = True) -> bool:
    """True for what :func:`flatten` looks into; the parts of sparse tensors, if ``composites``."""
    kind: Any = type(value)
    return _is_nested_type(kind, composites)


@lru_cache(maxsize=1024)
def _is_nested_type(kind: type, composites: bool) -> bool:
    if issubclass(kind, IndexedSlices | SparseTensor):
        return composites
    if issubclass(kind, Sequence | Mapping | MappingView):
        return not issubclass(kind, _LEAVES)
    return _has_attrs(kind)


def _has_attrs(kind: type) -> bool:
    """True for the classes of the package attrs."""
    return hasattr(kind, "__attrs_attrs__")


def _fields(value: Any) -> list[str] | None:
    """The names of the parts, if they have names and come in that order."""
    if _has_attrs(type(value)):
        return [attribute.name for attribute in type(value).__attrs_attrs__]
    return list(value._fields) if isinstance(value, tuple) and hasattr(value, "_fields") else None


def keys_of(value: Any) -> list[Any]:
    """How the parts of something nested are told from one another, in the order of the parts."""
    if isinstance(value, Mapping):
        return sorted(value)
    return _fields(value) or list(range(len(parts_of(value))))


def parts_of(value: Any) -> list[Any]:
    """The parts of something nested: of a dict, in the order of its keys."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return [value[key] for key in sorted(value)]
    if isinstance(value, IndexedSlices):
        parts = [value.values, value.indices, value.dense_shape]
        return [part for part in parts if part is not None]
    if isinstance(value, SparseTensor):
        return list(sparse_parts(value))
    if (names := _fields(value)) is not None:
        return [getattr(value, name) for name in names]
    return list(value)


def flatten(structure: Any, composites: bool = True) -> list[Any]:
    """The leaves of ``structure``, from left to right."""
    if not is_nested(structure, composites):
        return [structure]
    return [leaf for part in parts_of(structure) for leaf in flatten(part, composites)]


def pack_as(structure: Any, leaves: list[Any], composites: bool = True) -> Any:
    """``leaves`` in the form of ``structure``."""
    remaining = iter(leaves)
    packed = _pack(structure, remaining, composites)
    if next(remaining, None) is not None:
        raise ValueError(f"{len(leaves)} values are more than the structure {structure!r} holds")
    return packed


def _pack(structure: Any, leaves: Iterator[Any], composites: bool) -> Any:
    if not is_nested(structure, composites):
        return next(leaves)
    return with_parts(structure, [_pack(part, leaves, composites) for part in parts_of(structure)])


def with_parts(structure: Any, parts: list[Any]) -> Any:
    """Something nested like ``structure``, with these parts."""
    kind: Any = type(structure)
    if kind is list or isinstance(structure, range | MappingView):
        return parts
    if isinstance(structure, Mapping):
        made = dict(zip(sorted(structure), parts, strict=True))
        return _mapping_like(structure, {key: made[key] for key in structure})
    if isinstance(structure, IndexedSlices | SparseTensor) or _fields(structure) is not None:
        return kind(*parts)
    return kind(parts)


def _mapping_like(structure: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    kind: Any = type(structure)
    if isinstance(structure, defaultdict):
        return kind(structure.default_factory, items)
    return items if kind is dict else kind(items)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """``structure`` with ``function`` of each leaf in its place."""
    return pack_as(structure, [function(leaf) for leaf in flatten(structure)])


def require_same(
    one: Any,
    other: Any,
    names: tuple[str, str],
    check_types: bool = True,
    composites: bool = True,
) -> None:
    """An error that shows where two structures differ."""
    difference = _difference(one, other, check_types, composites)
    if difference is not None:
        where, what = difference
        place = f" at {where}" if where else ""
        # TensorFlow's kinds of error: another container is a mistake of type.
        kind = TypeError if what.startswith("one is a ") and "single" not in what else ValueError
        raise kind(
            f"{names[0]} and {names[1]} must have the same structure, but{place} {what}: "
            f"{describe(one)} and {describe(other)}."
        )


def _difference(
    one: Any, other: Any, check_types: bool, composites: bool
) -> tuple[str, str] | None:
    """The way to the first difference, and what it is."""
    if is_nested(one, composites) != is_nested(other, composites):
        return "", "one is a single value and the other a structure"
    if not is_nested(one, composites):
        return None
    if check_types:
        if type(one) is not type(other) and not are_alike(one, other):
            return "", f"one is a {type(one).__name__} and the other a {type(other).__name__}"
        if isinstance(one, Mapping) and set(one) != set(other):
            return "", f"the keys are {sorted(one)} and {sorted(other)}"
    ours, theirs = parts_of(one), parts_of(other)
    if len(ours) != len(theirs):
        return "", f"they have {len(ours)} and {len(theirs)} elements"
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        found = _difference(a, b, check_types, composites)
        if found is not None:
            key = sorted(one)[place] if isinstance(one, Mapping) else place
            return f"[{key!r}]{found[0]}", found[1]
    return None


def are_alike(one: Any, other: Any) -> bool:
    """True for two lists, two dicts, and named tuples of one name and with the same fields."""
    if isinstance(one, list) and isinstance(other, list):
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return True
    fields = getattr(one, "_fields", None)
    same_name = type(one).__name__ == type(other).__name__
    return fields is not None and same_name and fields == getattr(other, "_fields", None)


def describe(structure: Any) -> str:
    """``structure`` for a message, with a dot for each leaf."""
    if not is_nested(structure):
        return "·"
    if isinstance(structure, dict):
        items = ", ".join(f"{key!r}: {describe(structure[key])}" for key in sorted(structure))
        return "{" + items + "}"
    inner = ", ".join(describe(part) for part in parts_of(structure))
    if isinstance(structure, list):
        return f"[{inner}]"
    if type(structure) is tuple:
        return f"({inner},)" if len(structure) == 1 else f"({inner})"
    return f"{type(structure).__name__}({inner})"
