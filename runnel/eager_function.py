"""``tf.py_function``: a Python function over tensors that have values, with a gradient.

When a step comes to it, the function is called inside a graph of its own, whose constants are the
inputs: it may look at their values (``x.numpy()``) and use TensorFlow's functions on them. A
session computes what it returns. Its gradient is that of this graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.autodiff.gradients import gradients
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Tensor
from runnel.ops.constants import constant
from runnel.ops.control import identity_n
from runnel.ops.fill import zeros_like
from runnel.ops.py_function import numpy_function
from runnel.sessions import Session


def py_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 (TensorFlow's name)
    name: str | None = None,
) -> Any:
    """The result of ``func``, called with tensors that have values; it can be differentiated.

    ``Tout`` is the type of the result, or a list of types for several. Of tensors that ``func``
    computes from its arguments only a session knows the value: ``numpy()`` is for the arguments.

    Example:
        >>> x = tf.constant(3.0)
        >>> y = tf.py_function(lambda x: x * x if x.numpy() > 0 else -x, [x], tf.float32)
        >>> tf.Session().run([y, tf.gradients(y, x)[0]])
        [9.0, 6.0]
    """
    several = isinstance(Tout, list | tuple)
    types = [as_dtype(t).base_dtype for t in (Tout if several else [Tout])]
    inputs = [convert_to_tensor(value) for value in inp]
    if not types:
        return numpy_function(lambda *arrays: _computed(func, arrays, types), inputs, [], name)
    with get_default_graph().name_scope(name or "EagerPyFunc"):
        found = numpy_function(lambda *arrays: _computed(func, arrays, types), inputs, types)
        outputs = _with_gradient(func, inputs, found)
    return outputs if several else outputs[0]


def _with_gradient(
    func: Callable[..., Any], inputs: list[Tensor], outputs: list[Tensor]
) -> list[Tensor]:
    from runnel.autodiff.custom_gradient import custom_gradient

    differentiable = [i for i, tensor in enumerate(inputs) if _is_continuous(tensor)]
    if not differentiable or not any(map(_is_continuous, outputs)):
        return outputs

    @custom_gradient
    def outputs_of(*_: Any) -> Any:
        def gradient(*grads: Any) -> list[Tensor]:
            given = [g for g, y in zip(grads, outputs, strict=True) if _is_continuous(y)]
            types = [inputs[i].dtype.base_dtype for i in differentiable]

            def slopes(*arrays: Any) -> list[np.ndarray]:
                return _slopes(func, arrays[: len(inputs)], arrays[len(inputs) :], differentiable)

            found: list[Tensor] = numpy_function(slopes, [*inputs, *given], types)
            for slope, i in zip(found, differentiable, strict=True):
                slope.set_shape(inputs[i].shape)
            return found

        return identity_n(outputs), gradient

    return list(outputs_of(*[inputs[i] for i in differentiable]))


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _computed(func: Callable[..., Any], arrays: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """What ``func`` returns for ``arrays``."""
    with Graph().as_default() as graph:
        results = _results(func, [_valued(array) for array in arrays], types)
        with Session(graph=graph) as session:
            return list(session.run(results))


def _slopes(
    func: Callable[..., Any], arrays: Sequence[Any], grads: Sequence[Any], wanted: Sequence[int]
) -> list[Any]:
    """The gradients of the ``wanted`` of ``arrays``, where ``grads`` are those of the results."""
    with Graph().as_default() as graph:
        inputs = [_valued(array) for array in arrays]
        results = [y for y in _results(func, inputs, None) if _is_continuous(y)]
        sources = [inputs[i] for i in wanted]
        found = gradients(results, sources, grad_ys=[constant(grad) for grad in grads])
        slopes = [zeros_like(x) if g is None else g for g, x in zip(found, sources, strict=True)]
        with Session(graph=graph) as session:
            return list(session.run([convert_to_tensor(slope) for slope in slopes]))


def _valued(array: Any) -> Tensor:
    """A tensor of the present graph that knows its value."""
    tensor = constant(array)
    tensor.numpy = lambda: np.array(array)[()]  # type: ignore[attr-defined]
    return tensor


def _results(
    func: Callable[..., Any], inputs: list[Tensor], types: Sequence[Any] | None
) -> list[Tensor]:
    result = func(*inputs)
    if result is None:
        return []
    values = list(result) if isinstance(result, list | tuple) else [result]
    if types is None or len(values) != len(types):  # which py_func explains
        return [convert_to_tensor(value) for value in values]
    return [convert_to_tensor(v, t) for v, t in zip(values, types, strict=True)]
