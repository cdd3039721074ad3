"""Which tensors of a checkpoint a graph wants back: from what it saves, or from its operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.checkpoint.tensor_slice import parse_shape_and_slice
from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import DType
from runnel.graph.operation import Operation, Tensor
from runnel.ops.state import handle_dims

_PASS_ON = frozenset({"Identity", "Switch"})
_REFERENCE_UPDATES = frozenset({"Assign"})
_HANDLE_UPDATES = frozenset({"AssignVariableOp"})


@dataclass(frozen=True, slots=True)
class RestoredTensor:
    """One tensor that is restored: its name in the checkpoint, and what it must be there."""

    name: str
    dtype: DType
    shape: list[int | None] | None
    """None where any shape fits."""
    when_missing: str = ""
    """What to tell, and advise, if a checkpoint does not have it."""


def restored_by(saveables: Iterable[SaveableObject], reshape: bool) -> Iterator[RestoredTensor]:
    """The tensors that ``saveables`` want; with ``reshape`` shapes may differ."""
    for saveable in saveables:
        for spec in saveable.specs:
            shape = None if reshape else _saved_shape(saveable, spec)
            yield RestoredTensor(spec.name, spec.dtype, shape, saveable.when_missing)


def _saved_shape(saveable: SaveableObject, spec: SaveSpec) -> list[int | None] | None:
    sliced = parse_shape_and_slice(spec.slice_spec)
    if sliced is not None:
        return list(sliced[0])
    shape = saveable.shape
    return shape.as_list() if shape is not None and shape.is_fully_defined() else None


def restored_within(restore: Operation) -> Iterator[RestoredTensor]:
    """The tensors that the operations before ``restore`` read: of a graph that was imported."""
    waiting, seen = [restore], {restore}
    while waiting:
        op = waiting.pop()
        if op.type == "RestoreV2":
            specs = zip(_texts(op.inputs[1]), _texts(op.inputs[2]), op.outputs)
        elif op.type in ("Restore", "RestoreSlice"):
            slices = _texts(op.inputs[2]) if op.type == "RestoreSlice" else [""]
            specs = zip(_texts(op.inputs[1]), slices, op.outputs)
        else:
            for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
            continue
        for name, text, tensor in specs:
            sliced = parse_shape_and_slice(text)
            shape = _target_shape(tensor)
            if sliced is not None:
                shape = [*sliced[0]]
            yield RestoredTensor(name, tensor.dtype, shape)


def _texts(tensor: Tensor) -> list[str]:
    """The constant strings of ``tensor``; none where they are not constant."""
    value = constant_value(tensor)
    if value is None:
        return []
    return [_text(each) for each in np.asarray(value, object).reshape(-1)]


def _text(value: Any) -> str:
    """For people: a name in a damaged file may be any bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _target_shape(tensor: Tensor) -> list[int | None] | None:
    """The static shape of the variable that ``tensor`` is given to, if it must have that one."""
    for consumer in tensor.consumers():
        dims: Any = None
        if consumer.type in _PASS_ON:
            return _target_shape(consumer.outputs[0])
        if consumer.type in _REFERENCE_UPDATES and consumer.attrs.get("validate_shape", True):
            dims = consumer.inputs[0].dims
        elif consumer.type in _HANDLE_UPDATES:
            dims = handle_dims(consumer.inputs[0])
        if dims is not None and None not in dims:
            return list(dims)
    return None
