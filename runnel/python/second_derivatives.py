"""Names of ``gradients_impl`` that are not public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.autodiff.gradients import gradients
from runnel.graph.operation import Tensor
from runnel.ops.control import stop_gradient

__all__: list[str] = []


def _hessian_vector_product(ys: Any, xs: Sequence[Any], v: Sequence[Any]) -> list[Tensor]:
    """The Hessian of ``ys`` with respect to ``xs``, times the vector whose parts are ``v``.

    Without the Hessian: the gradient of the product of the gradient and the vector (Pearlmutter,
    *Fast Exact Multiplication by the Hessian*, 1994).
    """
    if len(v) != len(xs):
        raise ValueError("xs and v must have the same length.")
    products = [
        grad * stop_gradient(part)
        for grad, part in zip(gradients(ys, xs), v, strict=True)
        if grad is not None
    ]
    return gradients(products, xs)
