"""Finds the value of a tensor while the graph is being built, if it can be known.

A constant's value is known. So is the value of a pure operation whose inputs are known: its own
kernel computes it. Shape functions use this to see through ``tf.reshape(x, [2, -1])``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import INTERPRETED
from runnel.graph.shapes import Dims, num_elements

_MAX_ELEMENTS = 1024
_MAX_DEPTH = 16


def constant_value(tensor: Tensor, partial: bool = False) -> np.ndarray | None:
    """The value of ``tensor`` if it is the same in every step, else None."""
    return _evaluate(tensor, _MAX_DEPTH)


def _evaluate(tensor: Tensor, depth: int) -> Any:
    op = tensor.op
    op_def = op.op_def
    if op_def.name == "Const":
        return op.attrs["value"]
    if op_def.stateful or depth == 0 or not op.inputs:
        return None
    if op_def.name == "PlaceholderWithDefault":
        return None  # it is there to be fed another value
    if op_def.known_from_shapes:
        return _from_static_shape(tensor)
    if (num_elements(tensor.dims) or 0) > _MAX_ELEMENTS:
        return None
    kernel = op_def.select_kernel("CPU", op.inputs[0].dtype.base_dtype, INTERPRETED)
    if kernel is None or op_def.host:
        return None
    if any(p not in op_def.attributes and p != "check" for p in kernel.parameters):
        return None
    values = []
    for source in op.inputs:
        value = _evaluate(source, depth - 1)
        if value is None or value.size > _MAX_ELEMENTS:
            return None
        values.append(value)
    named = {name: _require if name == "check" else op.attrs[name] for name in kernel.parameters}
    grouped = op_def.group(values, op.attrs)
    try:
        with np.errstate(all="ignore"):
            result = kernel.function(np, *grouped, **named)
    except Exception:  # noqa: BLE001 (whatever is wrong will be reported when the step runs)
        return None
    if len(op.outputs) > 1 or op_def.outputs[0].is_list:
        result = result[tensor.value_index]
    return np.asarray(result)


def _require(holds: Any, explain: Any) -> None:
    if not np.all(holds):
        raise ValueError(explain())


def _from_static_shape(tensor: Tensor) -> np.ndarray | None:
    op = tensor.op
    source = op.inputs[tensor.value_index if len(op.outputs) > 1 else 0]
    dims = source.dims
    if dims is None:
        return None
    kind = tensor.dtype.np_dtype
    if op.type == "Rank":
        return np.array(len(dims), kind)
    size = num_elements(dims)
    if size is None:
        return None
    if op.type == "Size":
        return np.array(size, kind)
    if op.type in ("Shape", "ShapeN"):
        return np.array(dims, kind)
    return None


def constant_value_as_dims(tensor: Tensor) -> Dims:
    """The static shape that a tensor holding a shape describes; None where it is unknown.

    Sees through ``tf.shape(x)``, ``tf.stack([tf.shape(x)[0], 3])``, concatenations and slices,
    so that the known parts of a shape survive.
    """
    known = _partial_shape(tensor, _MAX_DEPTH)
    if known is not None:
        return known
    length = tensor.dims[0] if tensor.dims is not None and len(tensor.dims) == 1 else None
    return None if length is None else (None,) * length


def _partial_shape(tensor: Tensor, depth: int) -> Dims:
    value = _evaluate(tensor, depth)
    if value is not None:
        listed = value.tolist() if value.ndim == 1 else np.ravel(value).tolist()
        return tuple([None if d < 0 else int(d) for d in listed])
    op = tensor.op
    if depth == 0:
        return None
    if op.type in ("Shape", "ShapeN"):
        return op.inputs[tensor.value_index].dims
    if op.type == "Pack":
        parts = [_evaluate(item, depth - 1) for item in op.inputs]
        dims = []
        for part, item in zip(parts, op.inputs, strict=True):
            if part is None:
                nested = _partial_element(item, depth - 1)
                dims.append(nested)
            else:
                dims.append(None if int(part) < 0 else int(part))
        return tuple(dims)
    if op.type == "ConcatV2":
        out: tuple[int | None, ...] = ()
        for item in op.inputs[:-1]:
            part = _partial_shape(item, depth - 1)
            if part is None:
                return None
            out += part
        return out
    if op.type in ("Identity", "Cast"):
        return _partial_shape(op.inputs[0], depth - 1)
    if op.type == "StridedSlice":
        return _partial_slice(op, depth)
    return None


def _partial_element(tensor: Tensor, depth: int) -> int | None:
    """One known dimension behind ``tf.shape(x)[i]``."""
    if depth > 0 and tensor.op.type in ("StridedSlice", "Identity", "Cast"):
        part = _partial_shape(tensor, depth)
        if part is not None and len(part) == 1:
            return part[0]
    return None


def _partial_slice(op: Any, depth: int) -> Dims:
    base = _partial_shape(op.inputs[0], depth - 1)
    bounds = [_evaluate(t, depth - 1) for t in op.inputs[1:]]
    masks = [op.attrs[m] for m in ("begin_mask", "end_mask", "shrink_axis_mask")]
    plain = op.attrs["ellipsis_mask"] == 0 and op.attrs["new_axis_mask"] == 0
    if base is None or not plain or any(b is None or b.size != 1 for b in bounds):
        return None
    begin, end, stride = (int(b[0]) for b in bounds)
    if masks[2]:
        return (base[begin],) if -len(base) <= begin < len(base) else None
    piece = slice(None if masks[0] else begin, None if masks[1] else end, stride)
    return base[piece]
