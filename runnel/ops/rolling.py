"""Shifting elements along a dimension, those beyond the end coming back at the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import format_dims, merge_dims
from runnel.ops.array_shape import at_run_time, resolve_axis

roll_op = register_op(
    "Roll",
    inputs="input: T, shift: Tshift, axis: Taxis",
    outputs="output: T",
    attrs=["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    static_inputs=("axis",),
)


@roll_op.shape
def _(x, shift, axis):
    merge_dims(shift.dims, axis.dims)
    axes = constant_value(axis)
    if x.dims is not None and axes is not None:
        for a in np.atleast_1d(axes):
            resolve_axis(a, len(x.dims))
    return x.dims


@roll_op.kernel
def _(xp, x, shift, axis):
    if shift.shape != axis.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"shift {format_dims(shift.shape)} and axis {format_dims(axis.shape)} must have one "
            "shape",
        )
    axes = [at_run_time(resolve_axis, a, x.ndim) for a in np.atleast_1d(axis)]
    shifts = shift.reshape(-1)
    for i, a in enumerate(axes):
        x = xp.roll(x, shifts[i], a)
    return x


@roll_op.gradient
def _(op, grad):
    _, shift, axis = op.inputs
    return [roll_op(grad, get_op_def("Neg")(shift), axis), None, None]


def roll(
    input: Any,  # noqa: A002
    shift: Any,
    axis: Any,
    name: str | None = None,
) -> Tensor:
    """``input`` shifted by ``shift`` along ``axis``, or by several shifts along several.

    Example:
        >>> tf.roll([0, 1, 2, 3, 4], shift=2, axis=0)  # [3, 4, 0, 1, 2]
    """
    return roll_op(input, shift, axis, name=name)
