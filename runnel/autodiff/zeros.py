"""Zero gradients: with the shape of the tensor that they belong to, and alive where it is."""

from __future__ import annotations

from typing import Any

from runnel.autodiff.differentiation import guards_of
from runnel.autodiff.handles import made_by
from runnel.control_flow.guards import Guard, Guards, original
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.shapes import Dims, is_fully_defined
from runnel.ops.control_flow import merge, switch

Gradient = Tensor | IndexedSlices


def dims_of(tensor: Tensor) -> Dims:
    """The static shape of ``tensor``, or of the variable that it denotes."""
    if tensor.dtype.name != "resource":
        return tensor.dims
    variable = made_by(tensor)
    return variable.attrs["shape"]._dims if variable.op_def.variable else None


def type_of(tensor: Tensor) -> Any:
    """The element type of ``tensor``, or of the variable that it denotes."""
    if tensor.dtype.name == "resource":
        return made_by(tensor).attrs["dtype"]
    return tensor.dtype.base_dtype


def shape_for(tensor: Tensor) -> Any:
    """The shape of ``tensor``, or of the variable that it denotes."""
    from runnel.ops.array_shape import shape
    from runnel.ops.constants import constant
    from runnel.ops.state import shape_of_handle_op

    if tensor.dtype.name != "resource":
        return shape(tensor)
    declared = dims_of(tensor)
    if declared is not None and is_fully_defined(declared):
        return constant(declared, dtype="int32")
    return shape_of_handle_op(tensor)


def zeros_for(tensor: Tensor) -> Tensor:
    """Zeros in the shape of ``tensor``, or of the variable that it denotes."""
    from runnel.ops.fill import zeros, zeros_like

    if tensor.dtype.name == "variant":
        return zeros_like(tensor, optimize=False)
    return zeros(shape_for(tensor), type_of(tensor))


def no_slices_of(tensor: Tensor, index_type: Any) -> tuple[Tensor, Tensor]:
    """The values and indices of a sparse gradient of ``tensor`` that is zero everywhere."""
    from runnel.ops.fill import zeros
    from runnel.ops.joining import concat

    rest = shape_for(tensor)[1:]
    return zeros(concat([[0], rest], 0), type_of(tensor)), zeros([0], index_type)


def completed(grad: Gradient, tensor: Tensor, missing: Guards, present: Guards = ()) -> Gradient:
    """``grad``, alive also where only ``missing`` keeps it from being: there it is zero.

    The zeros are dead, like ``grad``, where ``present`` are not taken.
    """
    for index, guard in reversed(list(enumerate(missing))):
        # A predicate that was computed in a branch is dead with it, and so is what it switches.
        around = guards_of(tensor.graph).missing(guard.pred, (*present, *missing[:index]))
        other = 1 - guard.side
        if isinstance(grad, IndexedSlices):
            values, indices = no_slices_of(tensor, grad.indices.dtype)
            values, indices = (
                switch(dead_elsewhere(part, around), guard.pred)[other]
                for part in (values, indices)
            )
            grad = IndexedSlices(
                _either(grad.values, values, guard.side),
                _either(grad.indices, indices, guard.side),
                shape_for(tensor),
            )
        else:
            zeros = switch(dead_elsewhere(zeros_for(tensor), around), guard.pred)[other]
            grad = _either(convert_to_tensor(grad), zeros, guard.side)
    return grad


def dead_elsewhere(grad: Tensor, guards: Guards) -> Tensor:
    """``grad``, dead where ``guards`` are not taken.

    It is so already unless a gradient function made it of nothing in the branch.
    """
    context = grad.graph._get_control_flow_context()
    for guard in guards:
        pred = guard.pred if context is None else context.AddValue(guard.pred)
        here = Guard(original(pred), guard.side, pred)
        if guards_of(grad.graph).missing(grad, (here,)):
            grad = switch(grad, pred)[guard.side]
    return grad


def _either(grad: Tensor, zeros: Tensor, side: int) -> Tensor:
    return merge([zeros, grad] if side else [grad, zeros], name="cond_grad")[0]
