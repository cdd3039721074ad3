"""Sequences of numbers: ``tf.range`` and ``tf.linspace``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.ops.array_shape import at_run_time

range_op = register_op(
    "Range",
    inputs="start: Tidx, limit: Tidx, delta: Tidx",
    outputs="output: Tidx",
    attrs="Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64}"
    " = DT_INT32",
    static_inputs=("start", "limit", "delta"),
    differentiable=False,
)


def _length(start: Any, limit: Any, delta: Any) -> int:
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if delta > 0 and start > limit:
        raise ValueError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if delta < 0 and start < limit:
        raise ValueError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(start, int):
        return -((start - limit) // delta) if delta > 0 else -((limit - start) // -delta)
    return math.ceil(abs((limit - start) / delta))


@range_op.shape
def _(start, limit, delta):
    values = [constant_value(t) for t in (start, limit, delta)]
    if any(v is None for v in values):
        return (None,)
    return (_length(*[v.item() for v in values if v is not None]),)


@range_op.kernel
def _(xp, start, limit, delta):
    for value in (start, limit, delta):
        if value.ndim:
            raise InvalidArgumentError(None, None, "start, limit and delta must be scalars")
    first, step = start.item(), delta.item()
    count = at_run_time(_length, first, limit.item(), step)
    if isinstance(first, int):
        return xp.asarray(np.arange(count) * step + first, start.dtype)
    # As TensorFlow rounds: the product and the sum in the type of the result.
    if start.dtype in (np.float32, np.float64):
        return start + np.arange(count).astype(start.dtype) * delta
    return (first + np.arange(count) * step).astype(start.dtype)


_ORDER = (
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
)


def _common_type(values: list[Any]) -> DType:
    """The widest of the values' types."""
    types = [
        v.dtype.base_dtype if isinstance(v, Tensor) else as_dtype(convert_type(v)) for v in values
    ]
    for dtype in types:
        if dtype not in _ORDER:
            raise ValueError(f"tf.range needs dtype= for values of type {dtype.name}")
    return max(types, key=_ORDER.index)


def convert_type(value: Any) -> Any:
    """The element type that a Python or NumPy number has as a tensor."""
    from runnel.graph.conversion import make_array

    return make_array(value, None).dtype


def range(  # noqa: A001 (TensorFlow's name)
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """Numbers from ``start`` (0 if only one is given) to before ``limit``, ``delta`` apart.

    Example:
        >>> tf.range(3, 18, 3)  # [3, 6, 9, 12, 15]
        >>> tf.range(5)  # [0, 1, 2, 3, 4]
    """
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "range", [start, limit, delta]) as scope:
        values = [
            convert_to_tensor(v) if hasattr(v, "_as_graph_element") else v
            for v in (start, limit, delta)
        ]
        wanted = _common_type(values) if dtype is None else as_dtype(dtype)
        bounds = []
        for value, label in zip(values, ("start", "limit", "delta"), strict=True):
            if isinstance(value, Tensor):
                if value.dtype.base_dtype is not wanted:
                    value = get_op_def("Cast")(value, DstT=wanted)
                bounds.append(value)
            else:
                bounds.append(convert_to_tensor(value, wanted, label))
        return range_op(*bounds, name=scope)


linspace_op = register_op(
    "LinSpace",
    inputs="start: T, stop: T, num: Tidx",
    outputs="output: T",
    attrs=["T: floattype", "Tidx: {int32, int64} = DT_INT32"],
    static_inputs=("num",),
    differentiable=False,
)


@linspace_op.shape
def _(start, stop, num):
    count = constant_value(num)
    return (None,) if count is None else (_positive(int(count)),)


def _positive(count: int) -> int:
    if count <= 0:
        raise ValueError(f"Requires num > 0, not {count}")
    return count


@linspace_op.kernel
def _(xp, start, stop, num):
    count = at_run_time(_positive, int(num))
    wide = np.float64 if start.dtype == np.float64 else np.float32
    first, last = start.astype(wide), stop.astype(wide)
    if count == 1:
        return first.astype(start.dtype).reshape(1)
    steps = np.arange(count).astype(wide)
    values = first + (last - first) / wide(count - 1) * steps
    # The last value is exact, whatever the rounding of the steps.
    return xp.where(steps == count - 1, last, values).astype(start.dtype)


def lin_space(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """``num`` numbers, evenly spaced, from ``start`` to ``stop``, both included.

    Example:
        >>> tf.linspace(10.0, 12.0, 3)  # [10., 11., 12.]
    """
    return linspace_op(start, stop, num, name=name)


linspace = lin_space
