"""``tf.hessians``: second derivatives."""

from __future__ import annotations

from typing import Any

from runnel.autodiff.gradients import gradients
from runnel.control_flow.loop import while_loop
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape, shape, size
from runnel.ops.control_flow import EXITS
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat, stack
from runnel.ops.splitting import unstack


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Any]:
    """The second derivatives of the sum of ``ys`` with respect to each of ``xs``.

    For an ``x`` of shape S the result has shape S + S. A loop goes through the elements of the
    gradient; where that gradient is computed by loops itself, the elements are unrolled, for which
    the shape of ``x`` must be known.

    Example:
        >>> x = tf.constant([1.0, 2.0])
        >>> tf.Session().run(tf.hessians(tf.reduce_sum(x ** 3), x)[0])
        array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    with name_scope(name, "hessians"):
        inputs = list(xs) if isinstance(xs, list | tuple) else [xs]
        firsts = gradients(ys, inputs, **options)
        return [
            None if grad is None else _hessian(convert_to_tensor(grad), x, options)
            for x, grad in zip(inputs, firsts, strict=True)
        ]


def _hessian(grad: Tensor, x: Any, options: dict[str, Any]) -> Tensor:
    value = convert_to_tensor(x)
    elements = reshape(grad, [-1])

    def row(element: Tensor) -> Tensor:
        found = gradients(element, x, **options)[0]
        return zeros_like(value) if found is None else convert_to_tensor(found)

    if _is_computed_by_loops(grad):
        if elements.dims is None or elements.dims[0] is None:
            raise ValueError(
                f"tf.hessians needs the static shape of {value.name}, since its gradient is "
                "computed by a loop; give it with set_shape"
            )
        rows = stack([row(element) for element in unstack(elements)])
    else:
        count = size(elements)
        array = TensorArray(value.dtype.base_dtype, size=count)
        _, array = while_loop(
            lambda i, _: i < count, lambda i, a: (i + 1, a.write(i, row(elements[i]))), [0, array]
        )
        rows = array.stack()
    result = reshape(rows, concat([shape(value), shape(value)], 0))
    if value.dims is not None:
        result.set_shape((*value.dims, *value.dims))
    return result


def _is_computed_by_loops(tensor: Tensor) -> bool:
    seen = set()
    queue = [tensor.op]
    while queue:
        op = queue.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.op_def.name in EXITS:
            return True
        queue += [source.op for source in op.inputs]
    return False
