"""Batch normalisation with given statistics, as plain graph code."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.casting import cast
from runnel.ops.elementwise import rsqrt
from runnel.ops.half_precision import narrow, widen
from runnel.ops.reduce_functions import one_of


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """``scale * (x - mean) / sqrt(variance + variance_epsilon) + offset``.

    All broadcast against ``x``; ``offset`` and ``scale`` may be None.

    Example:
        >>> mean, variance = tf.nn.moments(x, [0])
        >>> y = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        x = convert_to_tensor(x, name="x")
        mean = convert_to_tensor(mean, name="mean", dtype_hint=x.dtype)
        variance = convert_to_tensor(variance, name="variance", dtype_hint=x.dtype)
        dtype = x.dtype.base_dtype
        inverse = rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        shift = -mean * inverse if offset is None else offset - mean * inverse
        # Two vectors are combined before x is touched: one multiplication and one addition.
        return x * cast(inverse, dtype) + cast(shift, dtype)


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Any = None,
    name: str | None = None,
    input: Any = None,  # noqa: A002
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """:func:`batch_normalization` under its oldest name and argument names.

    ``input``, ``mean`` and ``variance`` are newer names of ``t``, ``m`` and ``v``.
    """
    t = one_of("input", input, "t", t)
    m = one_of("mean", mean, "m", m)
    v = one_of("variance", variance, "v", v)
    scale = gamma if scale_after_normalization else None
    return batch_normalization(t, m, v, beta, scale, variance_epsilon, name)


# The op of graphs from 2015, among them the first Inception: it can be run, not built anew.

global_normalization_op = register_op(
    "BatchNormWithGlobalNormalization",
    inputs="t: T, m: T, v: T, beta: T, gamma: T",
    outputs="result: T",
    attrs=["T: numbertype", "variance_epsilon: float", "scale_after_normalization: bool"],
)


@global_normalization_op.shape
def _(t, *vectors):
    dims = t.dims if t.dims is not None else (None,) * 4
    if len(dims) != 4:
        raise ValueError(f"t must have rank 4, not shape {format_dims(dims)},")
    last: Dims = dims[3:]
    for vector in vectors:
        last = merge_dims(last, vector.dims)
    return (*dims[:3], *(last or ()))


@global_normalization_op.kernel
def _(xp, t, m, v, beta, gamma, *, variance_epsilon, scale_after_normalization):
    inverse = 1 / xp.sqrt(widen(v) + variance_epsilon)
    if scale_after_normalization:
        inverse = inverse * widen(gamma)
    return narrow((widen(t) - widen(m)) * inverse + widen(beta), t.dtype)


@global_normalization_op.formula
def _(op, t, m, v, beta, gamma):
    scale = gamma if op.attrs["scale_after_normalization"] else None
    return batch_normalization(t, m, v, beta, scale, op.attrs["variance_epsilon"])
