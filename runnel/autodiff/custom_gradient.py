"""``tf.custom_gradient``: a function of tensors with a gradient written by hand."""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Tensor

_numbers = itertools.count()


class _Gradient:
    """The gradient of one call; the graph of the call keeps it alive.

    Not in the registry: what a gradient closes over (tensors, and so their graph) would then live
    as long as the process.
    """

    __slots__ = ("call", "__weakref__")

    def __init__(self, call: Callable[..., list[Any]]) -> None:
        self.call = call


class _GradientsOfGraph(list[_Gradient]):
    """The gradients that a graph keeps alive."""


_gradients: weakref.WeakValueDictionary[str, _Gradient] = weakref.WeakValueDictionary()


def custom_gradient_function(name: str) -> Callable[..., list[Any]] | None:
    """The gradient of the call of a decorated function that is known under ``name``, if any."""
    gradient = _gradients.get(name)
    return None if gradient is None else gradient.call


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates ``f(*tensors)``, which returns (result, ``grad(*output_gradients)``).

    Where the result depends on trainable variables, ``grad`` takes ``variables`` too, and returns
    (gradients of the tensors, gradients of the variables).

    Example:
        >>> @tf.custom_gradient
        ... def log1pexp(x):
        ...     e = tf.exp(x)
        ...     return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        from runnel.ops.control import identity, identity_n

        inputs = [identity(convert_to_tensor(x)) for x in args]
        result, grad_fn = f(*inputs, **kwargs)
        is_list = isinstance(result, list | tuple)
        outputs = [convert_to_tensor(r) for r in (result if is_list else [result])]
        graph = get_default_graph()
        variables = _used_variables(graph, outputs, inputs)
        if variables and not _takes_variables(grad_fn):
            names = ", ".join(variable.name for variable in variables)
            raise TypeError(
                f"{f.__name__} uses variables ({names}), so its gradient must accept a keyword "
                "argument 'variables', and return (gradients of the arguments, gradients of the "
                "variables)"
            )

        def gradient(op: Any, *grads: Any) -> list[Any]:
            of_outputs = grads[: len(outputs)]
            if variables:
                given, of_variables = grad_fn(*of_outputs, variables=variables)
            else:
                given, of_variables = grad_fn(*of_outputs), []
            given = _as_list(given, len(inputs), f.__name__, "arguments")
            of_variables = _as_list(of_variables, len(variables), f.__name__, "variables")
            # The outputs enter the identity too, but what flows is what grad_fn says.
            return [None] * len(outputs) + given + of_variables

        name = f"CustomGradient-{next(_numbers)}"
        kept = _gradients[name] = _Gradient(gradient)
        graph.attached(_GradientsOfGraph).append(kept)
        values = [convert_to_tensor(variable) for variable in variables]
        with graph.gradient_override_map({"IdentityN": name}):
            joined = identity_n([*outputs, *inputs, *values])
        exposed = joined[: len(outputs)]
        return exposed if is_list else exposed[0]

    return decorated


def _as_list(given: Any, count: int, who: str, whose: str) -> list[Any]:
    found = list(given) if isinstance(given, list | tuple) else [given]
    if len(found) != count:
        raise ValueError(
            f"The gradient of {who} returned {len(found)} gradients for {count} {whose}"
        )
    return found


def _takes_variables(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _used_variables(graph: Graph, outputs: Iterable[Tensor], inputs: Iterable[Tensor]) -> list[Any]:
    """The trainable variables on which ``outputs`` depend other than through ``inputs``."""
    trainable = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    by_op = {variable.op: variable for variable in trainable}
    found: dict[Any, None] = {}
    seen, pending = {tensor.op for tensor in inputs}, [tensor.op for tensor in outputs]
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        if op in by_op:
            found[by_op[op]] = None
        pending += [tensor.op for tensor in op.inputs]
    return sorted(found, key=lambda variable: variable.op.id)


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` forwards; backwards, the identity: the straight-through estimator.

    Example:
        >>> x = tf.constant(1.4)
        >>> tf.Session().run(tf.gradients(tf.grad_pass_through(tf.round)(x), x))
        [1.0]
    """

    @custom_gradient
    def passed_through(*args: Any, **kwargs: Any) -> Any:
        def gradient(*grads: Any, variables: Any = None) -> Any:
            if variables is not None:
                return grads, [None] * len(variables)
            return grads

        return f(*args, **kwargs), gradient

    return passed_through
