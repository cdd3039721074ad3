"""Draws from Poisson distributions."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.sampling.random import (
    SEEDS,
    concrete_shape,
    dims_of_shape,
    op_seeds,
    reserved_for_shape,
)
from runnel.ops.sampling.rejection_sampling import poisson

random_poisson_op = register_op(
    "RandomPoissonV2",
    inputs="shape: S, rate: R",
    outputs="output: dtype",
    attrs=[
        *SEEDS,
        "S: {int32, int64}",
        "R: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64",
    ],
    static_inputs=("shape",),
    random=reserved_for_shape,
    differentiable=False,
)


@random_poisson_op.shape
def _(shape, rate):
    dims = dims_of_shape(shape)
    return None if dims is None or rate.dims is None else dims + rate.dims


@random_poisson_op.kernel
def _(xp, shape, rate, *, dtype, stream):
    drawn = poisson(xp, stream, concrete_shape(shape), rate, float(dtype.max))
    if dtype.is_integer:
        drawn = xp.where(xp.isfinite(drawn), drawn, 0)
    return drawn.astype(dtype.np_dtype)


def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws ``shape`` samples from each Poisson distribution of rate ``lam``.

    The result has the shape ``shape`` followed by that of ``lam``.

    Example:
        >>> tf.random_poisson([0.5, 1.5], [10]).shape
        TensorShape([Dimension(10), Dimension(2)])
    """
    with name_scope(name, "random_poisson", [lam, shape]):
        shape = convert_to_tensor(shape, dtypes.int32, name="shape")
        return random_poisson_op(shape, lam, dtype=as_dtype(dtype), **op_seeds(seed))
