"""The gradient of a tensor that a loop takes from outside: a sum over its iterations.

A loop variable adds up a dense gradient. A sparse one, of a table of which each iteration gathers
some rows, stays sparse: the rows of each iteration go into a TensorArray and are joined when the
loop has ended, so time and memory grow with the rows and not with the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.autodiff.aggregation import add
from runnel.autodiff.zeros import Gradient, dims_of, shape_for, type_of, zeros_for
from runnel.control_flow.while_context import WhileContext
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.shapes import is_fully_defined

Sum = Callable[[], Gradient]
"""Gives the sum when the loop has been built."""


def sum_over_iterations(
    loop: WhileContext, outside: Tensor, grad: Gradient, count: Tensor, index: Tensor
) -> Sum:
    """The sum of ``grad``, a gradient in the body of ``loop``, with respect to ``outside``.

    ``count`` is the number of iterations, and ``index`` the place of the present one among them.
    """
    if isinstance(grad, IndexedSlices):
        return _joined(loop, outside, grad, count, index)
    with loop.graph._scopes.override(control_inputs=(), control_flow_context=loop.outer_context):
        zero = zeros_for(outside)
    variable, total = loop.add_variable(zero, dims_of(outside))
    following = add(total, grad)
    following.set_shape(dims_of(outside))
    last = loop.end_variable(variable, following)
    return lambda: last


def _joined(
    loop: WhileContext, outside: Tensor, grad: IndexedSlices, count: Tensor, index: Tensor
) -> Sum:
    from runnel.ops.array_shape import reshape, shape
    from runnel.ops.joining import concat

    dims = dims_of(outside)
    values = grad.values
    rest: tuple[int | None, ...] = dims[1:] if dims else ()
    flat = dims is None or not is_fully_defined(rest)
    if flat:
        values, rest = reshape(values, [-1]), ()  # of no rows the shape would not be known
    kept_values = _kept(loop, values, type_of(outside), rest, count, index)
    kept_indices = _kept(loop, grad.indices, grad.indices.dtype, (), count, index)

    def joined() -> Gradient:
        rows, places = kept_values(), kept_indices()
        whole = shape_for(outside)
        if flat:
            rows = reshape(rows, concat([shape(places), whole[1:]], 0))
        return IndexedSlices(rows, places, whole)

    return joined


def _kept(
    loop: WhileContext,
    value: Tensor,
    dtype: Any,
    rest: tuple[int | None, ...],
    count: Tensor,
    index: Tensor,
) -> Callable[[], Tensor]:
    """``value`` of every iteration, joined along the first axis."""
    from runnel.control_flow.tensor_array import TensorArray

    with loop.graph._scopes.override(control_inputs=(), control_flow_context=loop.outer_context):
        array = TensorArray(dtype, size=count, element_shape=(None, *rest), infer_shape=False)
    variable, flow = loop.add_variable(array.flow, ())
    written = array._with_flow(flow).write(index, value)
    last = loop.end_variable(variable, written.flow)
    return lambda: array._with_flow(last).concat()
