"""Elements beside the types that an operation says of them: who takes what a program has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.shapes import TensorShape, format_dims, merge_dims

Element = Sequence[Any]


def of_types(element: Element, types: Sequence[DType]) -> Element:
    """``element``; an error unless its components are of ``types``."""
    if len(element) != len(types):
        raise _mismatch("Number of components", str(len(types)), str(len(element)))
    for place, (value, dtype) in enumerate(zip(element, types, strict=True)):
        found = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
        if found != dtype.np_dtype:
            shown = "string" if found == object else str(found)
            raise _mismatch(f"Data type of component {place}", dtype.name, shown)
    return element


def require_same(
    types: Sequence[DType],
    shapes: Sequence[TensorShape],
    other_types: Sequence[DType],
    other_shapes: Sequence[TensorShape],
) -> None:
    """An error unless elements of the second sort can be elements of the first."""
    if len(types) != len(other_types):
        raise _mismatch("Number of components", str(len(types)), str(len(other_types)))
    for place, (one, other) in enumerate(zip(types, other_types, strict=True)):
        if one is not other:
            raise _mismatch(f"Data type of component {place}", one.name, other.name)
    for place, (wanted, found) in enumerate(zip(shapes, other_shapes, strict=False)):
        try:
            merge_dims(wanted._dims, found._dims)
        except ValueError:
            shown = (format_dims(wanted._dims), format_dims(found._dims))
            raise _mismatch(f"Shape of component {place}", *shown) from None


def _mismatch(what: str, expected: str, found: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"{what} does not match: expected {expected} but got {found}. Give the types and shapes "
        "of the dataset that the elements come from.",
    )
