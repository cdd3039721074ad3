"""Draws from gamma distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import register_op
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_to
from runnel.ops.sampling.random import (
    SEEDS,
    concrete_shape,
    dims_of_shape,
    op_seeds,
    reserved_for_shape,
)
from runnel.ops.sampling.rejection_sampling import gamma

# No gradient is registered: one for alpha exists (Figurnov et al., "Implicit reparameterization
# gradients", 2018), and passing over it in silence would be wrong.
random_gamma_op = register_op(
    "RandomGamma",
    inputs="shape: S, alpha: T",
    outputs="output: T",
    attrs=[*SEEDS, "S: {int32, int64}", "T: {half, float, double}"],
    static_inputs=("shape",),
    random=reserved_for_shape,
)


@random_gamma_op.shape
def _(shape, alpha):
    dims = dims_of_shape(shape)
    return None if dims is None or alpha.dims is None else dims + alpha.dims


@random_gamma_op.kernel
def _(xp, shape, alpha, *, T, stream):
    return gamma(xp, stream, concrete_shape(shape), alpha).astype(T.np_dtype)


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws ``shape`` samples from each Gamma distribution of shape ``alpha`` and rate ``beta``.

    The result has the shape ``shape`` followed by that of ``alpha`` and ``beta`` broadcast
    together. The samples have a gradient for ``beta`` only.

    Example:
        >>> tf.random_gamma([10], [0.5, 1.5]).shape
        TensorShape([Dimension(10), Dimension(2)])
    """
    dtype = as_dtype(dtype).base_dtype
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = convert_to_tensor(shape, dtypes.int32, name="shape")
        alpha = convert_to_tensor(alpha, dtype, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype, name="beta")
        together = broadcast_dynamic_shape(shape_of(alpha), shape_of(beta))
        alpha = broadcast_to(alpha, together)
        skip_op_ids(-2)
        drawn = random_gamma_op(shape, alpha, **op_seeds(seed))
        # Draws for a small alpha can be too small to represent; none of them is really zero.
        return maximum(np.finfo(dtype.np_dtype).tiny, drawn / beta)
