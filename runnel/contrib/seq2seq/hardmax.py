"""All the weight on the largest: attention that looks at one place only."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.one_hot import one_hot


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """1 at the largest of each row of ``logits`` and 0 elsewhere.

    Example:
        >>> tf.contrib.seq2seq.hardmax([[1.0, 3.0, 2.0]])  # [[0., 1., 0.]]
    """
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        known = logits.dims[-1] if logits.dims else None
        depth = shape_of(logits)[-1] if known is None else known
        return one_hot(argmax(logits, -1), depth, dtype=logits.dtype.base_dtype)
