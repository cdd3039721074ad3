"""Gradients through broadcasting: sum over the dimensions in which an input was stretched."""

from __future__ import annotations

from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import Dims

Gradient = Tensor | IndexedSlices
Axes = tuple[list[int], list[int]]
"""Stretched axes of the result: those that the input does not have, those where it has size 1."""


def unbroadcast(
    x: Tensor, y: Tensor, grad_x: Gradient | None, grad_y: Gradient | None
) -> list[Any]:
    """The gradients of ``x`` and ``y`` from those of the same broadcast together.

    What the static shapes decide is decided now, so that a gradient without stretched
    dimensions adds nothing to the graph, and a sparse one stays sparse; the rest is left to
    ``BroadcastGradientArgs``.
    """
    if x is y:
        return [grad_x, grad_y]
    axes_x = stretched_axes(x.dims, y.dims)
    axes_y = stretched_axes(y.dims, x.dims)
    if grad_x is not None and axes_x is not None:
        grad_x = _sum_over(grad_x, axes_x)
    if grad_y is not None and axes_y is not None:
        grad_y = _sum_over(grad_y, axes_y)
    x_unknown = grad_x is not None and axes_x is None
    y_unknown = grad_y is not None and axes_y is None
    if x_unknown or y_unknown:
        shape, reshape = get_op_def("Shape"), get_op_def("Reshape")
        shape_x, shape_y = shape(x), shape(y)
        dynamic_x, dynamic_y = get_op_def("BroadcastGradientArgs")(shape_x, shape_y)
        total = get_op_def("Sum")
        if x_unknown:
            grad_x = reshape(total(grad_x, dynamic_x), shape_x)
        if y_unknown:
            grad_y = reshape(total(grad_y, dynamic_y), shape_y)
    return [grad_x, grad_y]


def unbroadcast_batch(x: Tensor, y: Tensor, grad_x: Tensor, grad_y: Tensor) -> list[Any]:
    """As :func:`unbroadcast`, for ops that broadcast all dimensions but the last two."""
    a, b = x.dims, y.dims
    if a is not None and b is not None:
        axes_x, axes_y = stretched_axes(a[:-2], b[:-2]), stretched_axes(b[:-2], a[:-2])
        if axes_x is not None and axes_y is not None:
            return [_sum_over(grad_x, axes_x), _sum_over(grad_y, axes_y)]
    shape, reshape, total = get_op_def("Shape"), get_op_def("Reshape"), get_op_def("Sum")
    shape_x, shape_y = shape(x), shape(y)
    axes = get_op_def("BroadcastGradientArgs")(shape_x[:-2], shape_y[:-2])
    return [
        reshape(total(grad_x, axes[0]), shape_x),
        reshape(total(grad_y, axes[1]), shape_y),
    ]


def stretched_axes(a: Dims, b: Dims) -> Axes | None:
    """Axes of ``a`` broadcast with ``b`` in which ``a`` was stretched; None if not yet known."""
    if a is None or b is None:
        return None
    extra = max(len(b) - len(a), 0)
    stretched = []
    for axis, size in enumerate(a, start=extra):
        at = axis - extra - len(a) + len(b)
        other = b[at] if at >= 0 else 1
        if size == 1:
            # Where the other size is unknown, a sum over it is right whatever it is.
            if other != 1:
                stretched.append(axis)
        elif size is None and other != 1:
            return None
    return list(range(extra)), stretched


def _sum_over(grad: Gradient, axes: Axes) -> Gradient:
    missing, stretched = axes
    total = get_op_def("Sum")
    if stretched:
        grad = total(grad, stretched, keep_dims=True)
    if missing:
        grad = total(grad, missing)
    return grad
