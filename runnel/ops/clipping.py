"""Limiting values and norms, of gradients above all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import broadcast_dims, merge_dims
from runnel.ops.arithmetic import maximum, minimum, select
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.elementwise import rsqrt, sqrt
from runnel.ops.reduce_functions import reduce_sum

clip_op = register_op(
    "ClipByValue",
    inputs="t: T, clip_value_min: T, clip_value_max: T",
    outputs="output: T",
    attrs="T: numbertype",
)


@clip_op.shape
def _(t, low, high):
    for bound in (low, high):
        if bound.dims != ():
            merge_dims(t.dims, broadcast_dims(t.dims, bound.dims))
    return t.dims


@clip_op.kernel
def _(xp, t, low, high):
    return xp.maximum(xp.minimum(t, high), low)


@clip_op.gradient
def _(op, grad):
    t, low, high = op.inputs
    zero = constant_tensor(0, grad.dtype.base_dtype)
    below, above = get_op_def("Less")(t, low), get_op_def("Greater")(t, high)
    outside = get_op_def("LogicalOr")(below, above)
    inside = select(outside, zero, grad)
    _, grad_low = unbroadcast(t, low, None, select(below, grad, zero))
    _, grad_high = unbroadcast(t, high, None, select(above, grad, zero))
    return [inside, grad_low, grad_high]


def _values(t: Any) -> Tensor:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name="t")


def _like(t: Any, values: Tensor) -> Any:
    """``values`` as ``t`` is: dense, or the same slices."""
    if isinstance(t, IndexedSlices):
        return IndexedSlices(values, t.indices, t.dense_shape)
    return values


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """``t`` with elements outside [``clip_value_min``, ``clip_value_max``] set to the limit.

    Example:
        >>> tf.Session().run(tf.clip_by_value([-5.0, 0.5, 5.0], -1.0, 1.0))
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        below = minimum(values, clip_value_max)
        merge_dims(values.dims, below.dims)  # the limits must not stretch t
        inside = maximum(below, clip_value_min, name=scope)
        merge_dims(values.dims, inside.dims)
        inside.set_shape(values.shape)
        return _like(t, inside)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """``t``, scaled down where its Euclidean norm (over ``axes``) is larger than ``clip_norm``."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        kind = values.dtype.base_dtype
        squared = reduce_sum(values * values, axes, keepdims=True)
        # The square root of zero has an infinite slope; its gradient must not be taken there.
        nonzero = squared > 0
        norm = select(nonzero, sqrt(select(nonzero, squared, constant_tensor(1, kind))), squared)
        limit = convert_to_tensor(clip_norm, kind, name="clip_norm")
        scaled = values * limit
        merge_dims(values.dims, scaled.dims)
        clipped = identity(scaled / maximum(norm, limit), name=scope)
        skip_op_ids(3)
        return _like(t, clipped)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all the tensors together; None entries are skipped."""
    _require_list(t_list)
    with name_scope(name, "global_norm", [t for t in t_list if t is not None]):
        halves = []
        for i, t in enumerate(t_list):
            if t is not None:
                value = t.values if isinstance(t, IndexedSlices) else t
                value = convert_to_tensor(value, name=f"t_{i}")
                with get_default_graph().colocate_with(value):
                    halves.append(get_op_def("L2Loss")(value))
        if not halves:
            raise ValueError("global_norm needs at least one tensor that is not None")
        half = reduce_sum(get_op_def("Pack")(halves))
        two = constant_tensor(2.0, half.dtype.base_dtype)
        return sqrt(half * two, name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """``t_list`` scaled so that their norm together is at most ``clip_norm``; and that norm.

    When the norm is not finite the result is NaN everywhere: a broken step shows.

    Example:
        >>> gradients, norm = tf.clip_by_global_norm(gradients, 5.0)
    """
    _require_list(t_list)
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    with name_scope(name, "clip_by_global_norm", [t for t in t_list if t is not None]) as scope:
        norm = convert_to_tensor(use_norm)
        kind = norm.dtype.base_dtype
        limit = convert_to_tensor(clip_norm, kind, name="clip_norm")
        one = constant_tensor(1.0, kind)
        scale = limit * minimum(one / norm, one / limit)
        scale = scale + (norm - norm)  # NaN unless the norm is finite
        clipped: list[Any] = []
        for i, t in enumerate(t_list):
            if t is None:
                clipped.append(None)
                continue
            values = _values(t)
            factor = cast(scale, values.dtype.base_dtype)
            clipped.append(_like(t, identity(values * factor, name=f"{scope[:-1]}_{i}")))
        skip_op_ids(3)
        return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """``t`` scaled so that its Euclidean norm over its size is at most ``clip_norm``."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        values = convert_to_tensor(t, name="t")
        kind = values.dtype.base_dtype
        limit = convert_to_tensor(clip_norm, kind, name="clip_norm")
        count = cast(get_op_def("Size")(values), kind)
        inverse = rsqrt(reduce_sum(values * values))
        one = constant_tensor(1.0, kind)
        scale = limit * minimum(inverse * count, one / limit)
        return identity(values * scale, name=scope)


def _require_list(t_list: Any) -> None:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError("t_list should be a sequence")
