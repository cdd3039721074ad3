"""Joining tensors and taking them apart: concat, stack, unstack, split."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import (
    constant_tensor,
    convert_to_tensor,
    register_tensor_conversion_function,
)
from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.array_shape import at_run_time, resolve_axis
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.control import identity

# Concatenation --------------------------------------------------------------------------------

concat_op = register_op(
    "ConcatV2",
    inputs="values: N * T, axis: Tidx",
    outputs="output: T",
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    static_inputs=("axis",),
)
concat_v1_op = register_op(
    "Concat",
    inputs="concat_dim: int32, values: N * T",
    outputs="output: T",
    attrs=["N: int >= 2", "T: type"],
    static_inputs=("concat_dim",),
)


# TensorFlow's gradient of a concatenation has it.
concat_offset_op = register_op(
    "ConcatOffset",
    inputs="concat_dim: int32, shape: N * shape_type",
    outputs="offset: N * shape_type",
    attrs=["N: int >= 2", "shape_type: {int32, int64} = DT_INT32"],
    static_inputs=("concat_dim",),
    differentiable=False,
)


@concat_offset_op.shape
def _(axis, shapes):
    return [shape.dims for shape in shapes]


@concat_offset_op.kernel
def _(xp, axis, shapes):
    at = int(axis)
    along = xp.asarray(at % shapes[0].shape[0] == np.arange(shapes[0].shape[0]))
    found, total = [], xp.zeros_like(shapes[0])
    for shape in shapes:
        found.append(xp.where(along, total, xp.zeros_like(shape)))
        total = total + shape
    return found


def _concat_dims(values: list[Tensor], axis: Tensor) -> Dims:
    known = [v.dims for v in values if v.dims is not None]
    if not known:
        return None
    rank = len(known[0])
    if rank == 0:
        raise ValueError("Scalars cannot be concatenated (use tf.stack)")
    at = constant_value(axis)
    if at is None:
        return (None,) * rank
    if at.ndim:
        raise ValueError(f"axis must be a scalar, not {at.tolist()}")
    place = resolve_axis(at, rank)
    total: int | None = 0
    others: Dims = (None,) * rank
    for dims in (v.dims for v in values):
        if dims is None:
            total = None
            continue
        if len(dims) != rank:
            raise ValueError(
                f"Shapes must have the same rank, but are {format_dims(known[0])} and "
                f"{format_dims(dims)}"
            )
        here = dims[place]
        total = None if total is None or here is None else total + here
        try:
            others = merge_dims(others, (*dims[:place], None, *dims[place + 1 :]))
        except ValueError:
            raise ValueError(
                f"Dimensions other than {place}, the axis, must be equal, but the shapes are "
                f"{', '.join(format_dims(v.dims) for v in values)}"
            ) from None
    assert others is not None
    return (*others[:place], total, *others[place + 1 :])


concat_op.shape(_concat_dims)
concat_v1_op.shape(lambda axis, values: _concat_dims(values, axis))


def _concatenate(xp: Any, values: list[Any], axis: Any) -> Any:
    first = values[0].shape
    place = at_run_time(resolve_axis, axis, len(first))
    if xp is np:
        try:
            return np.concatenate(values, place)
        except ValueError:
            pass  # in our words
    rest = first[:place], first[place + 1 :]
    for value in values:
        shape = value.shape
        if len(shape) != len(first) or (shape[:place], shape[place + 1 :]) != rest:
            shapes = ", ".join(format_dims(v.shape) for v in values)
            raise InvalidArgumentError(
                None,
                None,
                f"Dimensions other than {place}, the axis, must be equal, but the shapes are "
                f"{shapes}",
            )
    return xp.concatenate(values, axis=place)


@concat_op.kernel
def _(xp, values, axis):
    return _concatenate(xp, values, axis)


@concat_v1_op.kernel
def _(xp, concat_dim, values):
    return _concatenate(xp, values, concat_dim)


def _concat_gradient(values: list[Tensor], axis: Tensor, grad: Any) -> list[Any]:
    from runnel.ops.splitting import split_v_op

    at = constant_value(axis)
    sizes: Any = None
    rank = next((len(v.dims) for v in values if v.dims is not None), None)
    if at is not None and rank is not None:
        place = resolve_axis(at, rank)
        sizes = [v.dims[place] if v.dims is not None else None for v in values]
    if sizes is None or None in sizes:
        sizes = stack([shape_of(v)[axis] for v in values])
    if isinstance(grad, IndexedSlices) and at is not None and rank is not None:
        return _concat_slices_gradient(values, resolve_axis(at, rank), sizes, grad)
    return split_v_op(grad, sizes, axis, num_split=len(values))


def _concat_slices_gradient(
    values: list[Tensor], axis: int, sizes: Any, grad: IndexedSlices
) -> list[IndexedSlices]:
    """The slices of each value: along the rows its own ones, otherwise its part of each."""
    from runnel.ops.casting import cast
    from runnel.ops.comparison import logical_and
    from runnel.ops.gather import gather
    from runnel.ops.selection import where
    from runnel.ops.splitting import split_v_op

    shapes = [shape_of(v) for v in values]
    if axis > 0:
        parts = split_v_op(grad.values, sizes, axis, num_split=len(values))
        return [IndexedSlices(part, grad.indices, s) for part, s in zip(parts, shapes, strict=True)]
    found, start = [], constant_tensor(0, grad.indices.dtype)
    for shape in shapes:
        end = start + cast(shape[0], grad.indices.dtype)
        mine = where(logical_and(grad.indices >= start, grad.indices < end))[:, 0]
        rows = gather(grad.indices, mine) - start
        found.append(IndexedSlices(gather(grad.values, mine), rows, shape))
        start = end
    return found


@concat_op.gradient
def _(op, grad):
    *values, axis = op.inputs
    return [*_concat_gradient(values, axis, grad), None]


@concat_v1_op.gradient
def _(op, grad):
    axis, *values = op.inputs
    return [None, *_concat_gradient(values, axis, grad)]


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """The tensors of ``values`` one after the other along an existing dimension.

    Example:
        >>> tf.concat([[[1, 2]], [[3, 4]]], axis=0)  # [[1, 2], [3, 4]]
    """
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) == 1:
        if isinstance(axis, list | tuple):
            raise ValueError(
                f"The axis of tf.concat must be one integer, but is {axis!r}. Call it as "
                "tf.concat(values, axis): the tensors come first since TensorFlow 1.0."
            )
        with name_scope(name):
            dims = convert_to_tensor(axis, dtypes.int32, name="concat_dim").dims
            if dims:
                raise ValueError(
                    f"The axis of tf.concat must be one integer, not of shape {format_dims(dims)}"
                )
            return identity(values[0], name=name)
    return concat_op(list(values), axis, name=name)


# Packing --------------------------------------------------------------------------------------

pack_op = register_op(
    "Pack",
    inputs="values: N * T",
    outputs="output: T",
    attrs=["N: int >= 1", "T: type", "axis: int = 0"],
)
parallel_concat_op = register_op(
    "ParallelConcat",
    inputs="values: N * T",
    outputs="output: T",
    attrs=["N: int >= 1", "T: type", "shape: shape"],
    differentiable=False,
)


@pack_op.shape
def _(values, *, axis):
    merged: Dims = None
    for value in values:
        try:
            merged = merge_dims(merged, value.dims)
        except ValueError:
            raise ValueError(
                "The tensors to stack must have one shape, but have "
                f"{', '.join(format_dims(v.dims) for v in values)}"
            ) from None
    if merged is None:
        return None
    at = resolve_axis(axis, len(merged) + 1)
    return (*merged[:at], len(values), *merged[at:])


@pack_op.kernel
def _(xp, values, *, axis):
    first = values[0].shape
    if any(value.shape != first for value in values):
        raise InvalidArgumentError(
            None,
            None,
            "The tensors to stack must have one shape, but have "
            f"{', '.join(format_dims(v.shape) for v in values)}",
        )
    if xp is np and not first and values[0].dtype != object:
        return np.array(values, values[0].dtype)  # a fifth of the time
    return xp.stack(values, axis=axis)


@pack_op.gradient
def _(op, grad):
    from runnel.ops.splitting import unstack

    return unstack(grad, num=len(op.inputs), axis=op.attrs["axis"])


@parallel_concat_op.shape
def _(values, *, shape):
    return shape._dims


@parallel_concat_op.kernel
def _(xp, values):
    return xp.concatenate(values, axis=0)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape side by side along a new dimension.

    Example:
        >>> tf.stack([[1, 2], [3, 4]], axis=1)  # [[1, 3], [2, 4]]
    """
    if axis == 0 and not (isinstance(values, list | tuple) and holds_tensor(values)):
        return convert_to_tensor(values, name=name)  # one constant
    if not isinstance(values, list | tuple):
        from runnel.ops.splitting import unstack

        values = unstack(values)
    return pack_op(list(values), axis=axis, name=name)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """``stack`` along a new first dimension, for values of a fully known shape.

    Example:
        >>> tf.parallel_stack([[1, 2], [3, 4]])  # [[1, 2], [3, 4]]
    """
    from runnel.ops.array_shape import expand_dims

    with name_scope(name) as scope:
        tensors = [convert_to_tensor(v) for v in values]
        shape = tensors[0].shape
        shape.assert_is_fully_defined()
        rows = [expand_dims(t, 0) for t in tensors]
        whole = [len(tensors), *shape.as_list()]
        return parallel_concat_op(rows, shape=whole, name=scope)


# Lists that hold tensors ----------------------------------------------------------------------

_PLAIN = frozenset({int, float, bool, str, bytes, complex, np.ndarray})


def _is_tensor_type(kind: type) -> bool:
    return issubclass(kind, Tensor) or hasattr(kind, "_as_graph_element")


def holds_tensor(values: Any) -> bool:
    """True when a nested list has a tensor (or a variable) somewhere in it."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        return False
    if any(_is_tensor_type(kind) for kind in kinds):
        return True
    if not any(issubclass(kind, list | tuple) for kind in kinds):
        return False
    return any(isinstance(v, list | tuple) and holds_tensor(v) for v in values)


def _type_in(values: Any) -> DType | None:
    """The element type of the first tensor in a nested list."""
    for value in values:
        if isinstance(value, list | tuple):
            found = _type_in(value)
            if found is not None:
                return found
        elif _is_tensor_type(type(value)):
            return value.dtype.base_dtype
    return None


def _pack_nested(values: Any, dtype: DType, name: str) -> Tensor:
    if not holds_tensor(values):
        return convert_to_tensor(values, dtype)
    parts = []
    with name_scope(name) as scope:
        for i, value in enumerate(values):
            if isinstance(value, list | tuple):
                parts.append(_pack_nested(value, dtype, str(i)))
                continue
            if _is_tensor_type(type(value)) and value.dtype.base_dtype is not dtype:
                value = get_op_def("Cast")(value, DstT=dtype)
            parts.append(convert_to_tensor(value, dtype, str(i)))
        return pack_op(parts, name=scope)


def _convert_list(
    value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """Python lists with tensors in them become packed tensors; others stay constants."""
    if as_ref or not holds_tensor(value):
        return NotImplemented
    wanted = dtype or _type_in(value)
    assert wanted is not None
    return _pack_nested(value, wanted.base_dtype, name or "packed")


# Before other conversions of lists and tuples, after those of specific tuple types.
register_tensor_conversion_function((list, tuple), _convert_list, 99)
