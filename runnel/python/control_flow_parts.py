"""Names of ``control_flow_ops`` that are not public: the primitives, for tensors of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_
from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops import control_flow

__all__ = ["merge", "switch"]


class Switched(NamedTuple):
    """What a switch gives: one of the two is dead."""

    output_false: Any
    output_true: Any


class Merged(NamedTuple):
    """What a merge gives: the input that was alive, and its place."""

    output: Any
    value_index: Tensor


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> Switched:
    """``data``, alive in the output that ``pred`` selects; rows and sparse tensors in their parts.

    Example:
        >>> off, on = control_flow_ops.switch(x, is_training)
        >>> y, _ = control_flow_ops.merge([off, tf.nn.dropout(on, 0.5)])
    """
    with name_scope(name, "Switch", [data, pred]) as scope:
        pred = convert_to_tensor(pred, bool_, name="pred")
        if not _has_parts(data):
            # A variable's reference goes through as it is.
            data = data if isinstance(data, Tensor) else convert_to_tensor(data, dtype, name="data")
            return Switched(*control_flow.switch(data, pred, name=scope))
        pairs = [control_flow.switch(part, pred) for part in flatten(data)]
        return Switched(*(pack_as(data, list(side)) for side in zip(*pairs, strict=True)))


def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """The input that is alive, and its place among ``inputs``."""
    if any(value is None for value in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    with name_scope(name, "Merge", inputs) as scope:
        if not any(map(_has_parts, inputs)):
            tensors = [v if isinstance(v, Tensor) else convert_to_tensor(v) for v in inputs]
            return Merged(*control_flow.merge(tensors, name=scope))
        for place, other in enumerate(inputs):
            require_same(inputs[0], other, ("Input 0 of the merge", f"input {place}"))
        parts = zip(*map(flatten, inputs), strict=True)
        merged = [control_flow.merge(list(alternatives)) for alternatives in parts]
        outputs: list[Any] = [output for output, _ in merged]
        return Merged(pack_as(inputs[0], outputs), merged[0][1])


def _has_parts(value: Any) -> bool:
    return isinstance(value, IndexedSlices | SparseTensor)
