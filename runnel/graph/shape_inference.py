"""Runs an operation's shape function when the operation is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runnel.graph.shapes import Dims, broadcast_dims, format_dims

if TYPE_CHECKING:
    from runnel.graph.operation import Operation, Tensor


def infer_shapes(op: Operation) -> None:
    """Sets the static shapes of the outputs of ``op``; a mistake is a ValueError."""
    op_def = op.op_def
    function = op_def.shape_function
    if function is None:
        return
    try:
        arguments: Any = op.grouped_inputs() if op_def.has_list_inputs else op.inputs
        if op_def.shape_parameters:
            attrs = op.attrs
            named = {}
            for name in op_def.shape_parameters:
                named[name] = attrs[name]
            result = function(*arguments, **named)
        else:
            result = function(*arguments)
    except ValueError as error:
        raise _shape_error(op, error) from None
    outputs = op.outputs
    if not outputs:
        return  # the function has checked the inputs
    if len(outputs) == 1 and (result is None or type(result) is tuple):
        outputs[0].dims = result
        return
    for tensor, dims in zip(outputs, result, strict=True):
        tensor.dims = dims


def _shape_error(op: Operation, error: ValueError) -> ValueError:
    shapes = ", ".join(format_dims(t.dims) for t in op.inputs)
    lines = [f"{error} for {op.name!r} (op: {op.type!r}) with input shapes: {shapes}."]
    for tensor in op.inputs:
        site = tensor.op.creation_site()[-1].splitlines()[0]
        lines.append(f"  input {tensor.name} {format_dims(tensor.dims)} was created at {site}")
    return ValueError("\n".join(lines))


# Shape functions that many operations share ---------------------------------------------------


def unchanged(x: Tensor, *others: Tensor) -> Dims:
    """The output has the shape of the first input."""
    return x.dims


def scalar(*inputs: Any) -> Dims:
    """The output is a scalar."""
    return ()


def unknown(*inputs: Any) -> Dims:
    """Nothing is known beforehand."""
    return None


def broadcast(x: Tensor, y: Tensor) -> Dims:
    """The output is the inputs broadcast together."""
    a, b = x.dims, y.dims
    if a == b or b == ():
        return a
    return broadcast_dims(a, b)
