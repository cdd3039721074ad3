"""The incomplete gamma and beta functions.

Interpreted they are SciPy's, which JAX brings along; compiled, XLA's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import broadcast_dims
from runnel.ops.arithmetic import FLOATS, register_binary
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.casting import cast
from runnel.ops.elementwise import constant_like, exp_op, log_op, neg_op
from runnel.ops.special_functions import lgamma_op
from runnel.wide_types import with_wide_types

_TYPES = "float, double"


def scipy_kernel(name: str) -> Any:
    """``scipy.special.<name>``, or JAX's function of that name."""

    def kernel(xp, *arguments):
        dtype = arguments[0].dtype
        if dtype.itemsize < 4:
            arguments = tuple(argument.astype(np.float32) for argument in arguments)
        if xp is np:
            import scipy.special

            return np.asarray(getattr(scipy.special, name)(*arguments)).astype(dtype)
        import jax.scipy.special

        return getattr(jax.scipy.special, name)(*arguments).astype(dtype)

    return kernel


igamma_op = register_binary("Igamma", FLOATS, scipy_kernel("gammainc"), inputs="a: T, x: T")
igammac_op = register_binary("Igammac", FLOATS, scipy_kernel("gammaincc"), inputs="a: T, x: T")


def _slope_in_order(xp: Any, a: Any, x: Any) -> Any:
    """The derivative by ``a``, for which there is only XLA's series, in both tiers."""
    import jax

    if xp is not np:
        return jax.lax.igamma_grad_a(*xp.broadcast_arrays(a, x))
    value = with_wide_types(jax.lax.igamma_grad_a, *np.broadcast_arrays(a, x))
    return np.asarray(value, a.dtype)


igamma_grad_a_op = register_binary(
    "IgammaGradA", _TYPES, _slope_in_order, inputs="a: T, x: T", differentiable=False
)

betainc_op = register_op(
    "Betainc", inputs="a: T, b: T, x: T", outputs="z: T", attrs=f"T: {{{_TYPES}}}"
)


@betainc_op.shape
def _(a, b, x):
    return broadcast_dims(broadcast_dims(a.dims, b.dims), x.dims)


betainc_op.kernel(scipy_kernel("betainc"))


def _by_order(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of ``igamma`` by ``a``; its operation has no 16-bit types."""
    if a.dtype.size >= 4:
        return igamma_grad_a_op(a, x)
    return cast(igamma_grad_a_op(cast(a, "float32"), cast(x, "float32")), a.dtype.base_dtype)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of ``igamma`` by ``x``."""
    one = constant_like(1, a)
    return exp_op((a - one) * log_op(x) - x - lgamma_op(a))


@igamma_op.gradient
def _(op, grad):
    a, x = op.inputs
    return unbroadcast(a, x, grad * _by_order(a, x), grad * _density(a, x))


@igammac_op.gradient
def _(op, grad):
    a, x = op.inputs
    minus = neg_op(grad)
    return unbroadcast(a, x, minus * _by_order(a, x), minus * _density(a, x))


@betainc_op.gradient
def _(op, grad):
    a, b, x = op.inputs
    one = constant_like(1, x)
    log_beta = lgamma_op(a) + lgamma_op(b) - lgamma_op(a + b)
    log_density = (b - one) * log_op(one - x) + (a - one) * log_op(x) - log_beta
    slope = grad * exp_op(log_density)
    return None, None, unbroadcast(slope, x, None, slope)[1]  # as in TensorFlow: by x alone


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower regularized incomplete gamma function.

    Example:
        >>> tf.Session().run(tf.igamma(1.0, 2.0))  # 1 - exp(-2)
        0.86466473
    """
    return igamma_op(a, x, name=name)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The upper one: ``1 - igamma(a, x)``, accurate where that is tiny."""
    return igammac_op(a, x, name=name)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function, for ``x`` between 0 and 1.

    Example:
        >>> tf.Session().run(tf.betainc(2.0, 3.0, 0.5))
        0.6875
    """
    a, b, x = (convert_to_tensor(value) for value in (a, b, x))
    return betainc_op(a, b, x, name=name)
