"""Nested structures of tensors: lists, tuples, named tuples and dicts (in the order of keys)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.sparse_tensor import SparseTensor, sparse_parts


def is_nested(value: Any) -> bool:
    """True for what :func:`flatten` looks into."""
    return isinstance(value, list | tuple | dict | IndexedSlices | SparseTensor)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if isinstance(value, IndexedSlices):
        parts = [value.values, value.indices, value.dense_shape]
        return [part for part in parts if part is not None]
    if isinstance(value, SparseTensor):
        return list(sparse_parts(value))
    return list(value)


def flatten(structure: Any) -> list[Any]:
    """The leaves of ``structure``, from left to right."""
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def pack_as(structure: Any, leaves: list[Any]) -> Any:
    """``leaves`` in the form of ``structure``."""
    remaining = iter(leaves)
    packed = _pack(structure, remaining)
    if next(remaining, None) is not None:
        raise ValueError(f"{len(leaves)} values are more than the structure {structure!r} holds")
    return packed


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, dict):
        made = {key: _pack(structure[key], leaves) for key in sorted(structure)}
        kind: Any = type(structure)
        ordered = {key: made[key] for key in structure}
        return ordered if kind is dict else kind(ordered)
    parts = [_pack(part, leaves) for part in _parts(structure)]
    if isinstance(structure, list):
        return parts
    if isinstance(structure, IndexedSlices):
        return IndexedSlices(*parts)
    if isinstance(structure, SparseTensor):
        return SparseTensor(*parts)
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return tuple(parts)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """``structure`` with ``function`` of each leaf in its place."""
    return pack_as(structure, [function(leaf) for leaf in flatten(structure)])


def require_same(one: Any, other: Any, names: tuple[str, str]) -> None:
    """An error that shows where two structures differ."""
    difference = _difference(one, other, "")
    if difference is not None:
        where, what = difference
        place = f" at {where}" if where else ""
        # TensorFlow's kinds of error: another container is a mistake of type.
        kind = TypeError if what.startswith("one is a ") and "single" not in what else ValueError
        raise kind(
            f"{names[0]} and {names[1]} must have the same structure, but{place} {what}: "
            f"{describe(one)} and {describe(other)}."
        )


def _difference(one: Any, other: Any, path: str) -> tuple[str, str] | None:
    if is_nested(one) != is_nested(other):
        return path, "one is a single value and the other a structure"
    if not is_nested(one):
        return None
    if type(one) is not type(other):
        return path, f"one is a {type(one).__name__} and the other a {type(other).__name__}"
    if isinstance(one, dict):
        if set(one) != set(other):
            return path, f"the keys are {sorted(one)} and {sorted(other)}"
        labels = [f"[{key!r}]" for key in sorted(one)]
    else:
        labels = [f"[{i}]" for i in range(len(_parts(one)))]
    ours, theirs = _parts(one), _parts(other)
    if len(ours) != len(theirs):
        return path, f"they have {len(ours)} and {len(theirs)} elements"
    for label, a, b in zip(labels, ours, theirs, strict=True):
        found = _difference(a, b, path + label)
        if found is not None:
            return found
    return None


def describe(structure: Any) -> str:
    """``structure`` for a message, with a dot for each leaf."""
    if not is_nested(structure):
        return "·"
    if isinstance(structure, dict):
        items = ", ".join(f"{key!r}: {describe(structure[key])}" for key in sorted(structure))
        return "{" + items + "}"
    inner = ", ".join(describe(part) for part in _parts(structure))
    if isinstance(structure, list):
        return f"[{inner}]"
    if type(structure) is tuple:
        return f"({inner},)" if len(structure) == 1 else f"({inner})"
    return f"{type(structure).__name__}({inner})"
