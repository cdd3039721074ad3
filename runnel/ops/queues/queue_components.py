"""The components of an element as users give them: types, shapes and names, one or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.shapes import TensorShape


def type_list(dtypes: Any) -> list[DType]:
    """``dtypes``, one or several, as a list."""
    several = isinstance(dtypes, list | tuple)
    return [as_dtype(t).base_dtype for t in (dtypes if several else [dtypes])]


def shape_list(shapes: Any, partial: bool = False) -> list[TensorShape] | None:
    """``shapes``, one or several, as a list; an error unless they are known, as far as needed."""
    if partial and (
        not isinstance(shapes, Sequence)
        or not shapes
        or any(s is None or isinstance(s, int) for s in shapes)
    ):
        raise ValueError("When providing partial shapes, a list of shapes must be provided.")
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, list | tuple):
        raise TypeError(f"shapes must be a shape or a list of shapes, not {shapes!r}")
    if all(s is None or isinstance(s, int) for s in shapes):
        shapes = [shapes]
    made = [TensorShape(s) for s in shapes]
    for shape in made:
        if shape.rank is None or not (partial or shape.is_fully_defined()):
            raise ValueError(
                f"All shapes must {'have a defined rank' if partial else 'be fully defined'}: "
                f"{made}"
            )
    return made


def name_list(names: Any, count: int) -> list[str] | None:
    """``names``, one or several, as a list of ``count``."""
    if names is None:
        return None
    names = list(names) if isinstance(names, list | tuple) else [names]
    if len(names) != count:
        raise ValueError(
            f"There must be as many names as components, {count}, but {names} are {len(names)}"
        )
    return names
