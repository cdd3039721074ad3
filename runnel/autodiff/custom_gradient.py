"""``tf.custom_gradient``: a function of tensors with a gradient written by hand."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph

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

        def gradient(op: Any, *grads: Any) -> list[Any]:
            given = grad_fn(*grads[: len(outputs)])
            given = list(given) if isinstance(given, list | tuple) else [given]
            if len(given) != len(inputs):
                raise ValueError(
                    f"The gradient of {f.__name__} returned {len(given)} gradients for "
                    f"{len(inputs)} arguments"
                )
            # The outputs enter the identity too, but what flows is what grad_fn says.
            return [None] * len(outputs) + given

        name = f"CustomGradient-{next(_numbers)}"
        graph = get_default_graph()
        kept = _gradients[name] = _Gradient(gradient)
        graph.attached(_GradientsOfGraph).append(kept)
        with graph.gradient_override_map({"IdentityN": name}):
            joined = identity_n([*outputs, *inputs])
        exposed = joined[: len(outputs)]
        return exposed if is_list else exposed[0]

    return decorated
