"""``Defun``: functions as programs define them that know TensorFlow's inside.

TensorFlow writes such a function into the graph's library and calls it from there. Here each call
adds the function's operations to the graph, under a scope of its own; what a call computes, its
effects and its gradient are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runnel.autodiff.custom_gradient import custom_gradient
from runnel.data.function_effects import with_effects
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import no_op

__all__ = ["Defun"]


class CallWithGradient(NamedTuple):
    """What a gradient written in Python learns of a call, in place of its operation."""

    inputs: list[Tensor]
    outputs: list[Tensor]


class Defun:
    """Decorates a function of tensors of the given types (those of the arguments, without).

    ``grad_func(*inputs, *output_gradients)``, defined in the same way, or
    ``python_grad_func(op, *output_gradients)`` is its gradient; without, it is that of its
    operations. Options that say how TensorFlow compiles a call (``noinline``, ``compiled``,
    ``shape_func``, ``out_names`` and so on) make no difference.

    Example:
        >>> @Defun(tf.float32)
        ... def twice(x):
        ...     return x * 2.0
        >>> twice([1.0, 2.0])
    """

    def __init__(
        self,
        *input_types: Any,
        func_name: str | None = None,
        grad_func: Callable[..., Any] | None = None,
        python_grad_func: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if grad_func is not None and python_grad_func is not None:
            raise ValueError("Give Defun grad_func or python_grad_func, not both")
        self._types = [as_dtype(dtype) for dtype in input_types]
        self._name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction:
        name = self._name or func.__name__
        return DefinedFunction(func, name, self._types, self._gradient())

    def _gradient(self) -> Callable[..., Any] | None:
        of_inputs, of_call = self._grad_func, self._python_grad_func
        if of_inputs is not None:
            return lambda call, *grads: of_inputs(*call.inputs, *grads)
        return of_call


class DefinedFunction:
    """A function that was defined: calling it adds what it computes to the default graph."""

    def __init__(
        self,
        func: Callable[..., Any],
        name: str,
        types: Sequence[DType],
        gradient: Callable[..., Any] | None,
    ) -> None:
        self._func = func
        self._types = types
        self._gradient = gradient
        self.name = name
        self.__name__ = name
        self.__doc__ = func.__doc__

    def add_to_graph(self, g: Graph) -> None:
        """Nothing: a call brings all that it needs."""

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        """What the function makes of ``args``; an operation if it returns nothing."""
        if self._types and len(args) != len(self._types):
            raise ValueError(
                f"{self.name} was defined for {len(self._types)} arguments, and is called with "
                f"{len(args)}"
            )
        types: Sequence[DType | None] = self._types or [None] * len(args)
        graph = get_default_graph()
        with graph.name_scope(name or self.name):
            inputs = [convert_to_tensor(arg, t) for arg, t in zip(args, types, strict=True)]
            if self._gradient is None:
                return self._computed(graph, inputs)
            return custom_gradient(self._with_gradient)(*inputs)

    def _computed(self, graph: Graph, inputs: Sequence[Tensor]) -> Any:
        """The results, made when the call has had all its effects."""
        before = len(graph.get_operations())
        result = self._func(*inputs)
        is_several = isinstance(result, list | tuple)
        given: Sequence[Any] = result if is_several else [result]
        is_empty = not is_several and (result is None or isinstance(result, Operation))
        outputs = [] if is_empty else [convert_to_tensor(value) for value in given]
        body = graph.get_operations()[before:]
        if outputs:
            outputs = with_effects(outputs, body)
            return outputs if is_several else outputs[0]
        with graph.control_dependencies(body):
            return no_op()

    def _with_gradient(self, *inputs: Tensor) -> tuple[Any, Callable[..., Any]]:
        gradient = self._gradient
        assert gradient is not None
        result = self._computed(get_default_graph(), inputs)
        outputs = list(result) if isinstance(result, list | tuple) else [result]
        call = CallWithGradient(list(inputs), outputs)
        return result, lambda *grads: gradient(call, *grads)
