"""Joining strings."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import merge_dims

string_join_op = register_op(
    "StringJoin",
    inputs="inputs: N * string",
    outputs="output: string",
    attrs=["N: int >= 0", "separator: string = ''"],
    host=True,
    differentiable=False,
)


@string_join_op.shape
def _(inputs):
    several = [x.dims for x in inputs if x.dims != ()]
    if not several:
        return ()
    known = [dims for dims in several if dims is not None]
    if not known:
        return None
    try:
        return functools.reduce(merge_dims, known)
    except ValueError:
        raise ValueError(
            f"The shapes {known} differ; only single strings are joined to others."
        ) from None


@string_join_op.kernel
def _(xp, texts, *, separator):
    arrays = [np.asarray(text, object) for text in texts]
    shapes = {array.shape for array in arrays if array.ndim}
    if len(shapes) > 1:
        raise InvalidArgumentError(None, None, f"The shapes {sorted(shapes)} of the inputs differ.")
    shape = shapes.pop() if shapes else ()
    between = separator.encode() if isinstance(separator, str) else separator
    size = math.prod(shape)
    columns = [_parts(array) if array.ndim else _parts(array) * size for array in arrays]
    rows = zip(*columns, strict=True) if columns else [()]
    out = np.empty(size, object)
    out[:] = list(map(between.join, rows))
    return out.reshape(shape)


def _parts(array: np.ndarray) -> list[bytes]:
    """The strings of an array, as bytes: what Python code made may have text."""
    parts: list[Any] = array.reshape(-1).tolist()
    if set(map(type, parts)) <= {bytes}:
        return parts
    return [part.encode() if isinstance(part, str) else bytes(part) for part in parts]


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """The strings of each place of ``inputs``, joined with ``separator`` between them.

    Inputs have one shape, or are single strings.

    Example:
        >>> tf.strings.join(["model", "ckpt"], separator=".")
        <tf.Tensor 'StringJoin:0' shape=() dtype=string>
    """
    return string_join_op(list(inputs), separator=separator, name=name)
