"""The error function, the gamma function's logarithm and derivatives, and Hurwitz's zeta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef
from runnel.ops import single_precision, special_values
from runnel.ops.arithmetic import FLOATS, register_binary
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.casting import cast
from runnel.ops.elementwise import (
    constant_like,
    exp_op,
    named_unary,
    neg_op,
    register_unary,
    square_op,
)
from runnel.ops.reduce_functions import reduce_sum


def _kernel(name: str, jax_name: str) -> Callable[..., Any]:
    """``special_values.<name>`` interpreted, ``jax.scipy.special.<jax_name>`` compiled.

    Up to float32, ``single_precision.<name>`` where there is one.
    """
    compute = getattr(special_values, name)
    compute_singles = getattr(single_precision, name, compute)

    def kernel(xp, *arguments):
        dtype = arguments[0].dtype
        if xp is np:
            function = compute if dtype.itemsize == 8 else compute_singles
            return function(*arguments).astype(dtype, copy=False)
        import jax.scipy.special

        if name == "polygamma":
            return _compiled_polygamma(xp, *arguments)
        return getattr(jax.scipy.special, jax_name)(*arguments).astype(dtype)

    return kernel


def _compiled_polygamma(xp: Any, n: Any, x: Any) -> Any:
    from jax.scipy.special import polygamma

    whole = (n >= 0) & (n == xp.floor(n))
    value = polygamma(xp.where(whole, n, 0).astype(np.int32), x)
    return xp.where(whole, value, np.nan).astype(x.dtype)


def _unary(name: str, function: str, jax_name: str) -> OpDef:
    return register_unary(name, FLOATS, _kernel(function, jax_name))


erf_op = _unary("Erf", "erf", "erf")
erfc_op = _unary("Erfc", "erfc", "erfc")
lgamma_op = _unary("Lgamma", "lgamma", "gammaln")
digamma_op = _unary("Digamma", "digamma", "digamma")
zeta_op = register_binary("Zeta", "float, double", _kernel("zeta", "zeta"), inputs="x: T, q: T")
polygamma_op = register_binary(
    "Polygamma", "float, double", _kernel("polygamma", "polygamma"), inputs="a: T, x: T"
)


@erf_op.gradient
def _(op, grad):
    x = op.inputs[0]
    return grad * (constant_like(2 / math.sqrt(math.pi), x) * exp_op(neg_op(square_op(x))))


@erfc_op.gradient
def _(op, grad):
    x = op.inputs[0]
    return grad * (constant_like(-2 / math.sqrt(math.pi), x) * exp_op(neg_op(square_op(x))))


@lgamma_op.gradient
def _(op, grad):
    return grad * digamma_op(op.inputs[0])


@digamma_op.gradient
def _(op, grad):
    x = op.inputs[0]
    wide = cast(x, "float32") if x.dtype.size < 4 else x  # Polygamma has no 16-bit types
    return grad * cast(polygamma_op(constant_like(1, wide), wide), x.dtype.base_dtype)


@zeta_op.gradient
def _(op, grad):
    x, q = op.inputs
    slope = neg_op(x) * zeta_op(x + constant_like(1, x), q)
    return unbroadcast(x, q, None, grad * slope)  # no closed form for the first argument


@polygamma_op.gradient
def _(op, grad):
    n, x = op.inputs
    slope = polygamma_op(n + constant_like(1, n), x)
    return unbroadcast(n, x, None, grad * slope)  # the order is not a continuous quantity


def erf(x: Any, name: str | None = None) -> Tensor:
    """The error function.

    Example:
        >>> tf.Session().run(tf.erf(0.5))
        0.5204999
    """
    return named_unary(erf_op, x, name)


def erfc(x: Any, name: str | None = None) -> Tensor:
    """One minus the error function, accurate where that is tiny."""
    return named_unary(erfc_op, x, name)


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    return named_unary(lgamma_op, x, name)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of :func:`lgamma`."""
    return named_unary(digamma_op, x, name)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The ``a``-th derivative of :func:`digamma` at ``x``, for whole ``a``."""
    return polygamma_op(a, x, name=name)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of ``(q + k) ** -x`` over k = 0, 1, ..."""
    return zeta_op(x, q, name=name)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the numbers along the last axis.

    Example:
        >>> tf.Session().run(tf.math.lbeta([1.0, 2.0]))  # log(1/2)
        -0.6931472
    """
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        apart = reduce_sum(lgamma_op(x), -1)
        return apart - lgamma_op(reduce_sum(x, -1))
