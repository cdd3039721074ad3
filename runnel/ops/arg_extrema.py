"""Where along an axis the largest or smallest element is."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims
from runnel.ops.reduce_functions import one_of


def _register(name: str, method: str, index_types: str, output_types: str) -> OpDef:
    op_def = register_op(
        name,
        inputs="input: T, dimension: Tidx",
        outputs="output: output_type",
        attrs=[
            "T: {realnumbertype, bool}",
            f"Tidx: {{{index_types}}} = DT_INT32",
            f"output_type: {{{output_types}}} = DT_INT64",
        ],
        static_inputs=("dimension",),
        differentiable=False,
    )
    op_def.shape(_without_axis)

    @op_def.kernel
    def _(xp, x, dimension, *, output_type):
        axis = _axis(int(dimension), x.ndim)
        if x.shape[axis] == 0:
            raise ValueError(f"Reduction axis {axis} is empty in shape {list(x.shape)}")
        if x.dtype.kind in "fV":
            x = _without_nans(xp, x, -np.inf if method == "argmax" else np.inf)
        return getattr(xp, method)(x, axis=axis).astype(output_type.np_dtype)

    return op_def


def _without_nans(xp: Any, x: Any, worst: float) -> Any:
    """``x`` with the worst value in place of NaNs: an index of one is never the answer."""
    nans = xp.isnan(x)
    if xp is np and not nans.any():
        return x
    return xp.where(nans, np.array(worst, x.dtype), x)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"Dimension must be in [{-rank}, {rank}), but is {axis}")
    return axis % rank


def _without_axis(x: Tensor, dimension: Tensor) -> Dims:
    if x.dims is None:
        return None
    axis = constant_value(dimension)
    if axis is None:
        return (None,) * (len(x.dims) - 1)
    position = _axis(int(axis), len(x.dims))
    return x.dims[:position] + x.dims[position + 1 :]


arg_max_op = _register("ArgMax", "argmax", "int16, int32, int64", "int16, uint16, int32, int64")
arg_min_op = _register("ArgMin", "argmin", "int32, int64", "int32, int64")


def _argument(
    op_def: OpDef, x: Any, axis: Any, name: str | None, dimension: Any, output_type: Any
) -> Tensor:
    axis = one_of("axis", axis, "dimension", dimension)
    return op_def(
        convert_to_tensor(x, name="input"),
        0 if axis is None else axis,
        output_type=as_dtype(output_type),
        name=name,
    )


def argmax(
    input: Any,  # noqa: A002
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The index of the largest element along ``axis`` (0 by default); the first of equals.

    NaNs are passed over; where there is nothing else the index is 0.

    Example:
        >>> tf.Session().run(tf.argmax([[1, 5, 3], [9, 0, 2]], 1))
        array([1, 0])
    """
    return _argument(arg_max_op, input, axis, name, dimension, output_type)


def argmin(
    input: Any,  # noqa: A002
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The index of the smallest element along ``axis`` (0 by default); the first of equals."""
    return _argument(arg_min_op, input, axis, name, dimension, output_type)


def arg_max(
    input: Any,  # noqa: A002
    dimension: Any,
    output_type: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """The older name of :func:`argmax`."""
    return argmax(input, dimension, name, output_type=output_type)


def arg_min(
    input: Any,  # noqa: A002
    dimension: Any,
    output_type: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """The older name of :func:`argmin`."""
    return argmin(input, dimension, name, output_type=output_type)
