"""``tf.recompute_grad``: computes the values that a gradient needs again rather than keep them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.autodiff.custom_gradient import custom_gradient
from runnel.autodiff.gradients import gradients
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.ops.control import barrier_op
from runnel.variables.variable_scope import get_variable_scope, variable_scope


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, whose values are not kept for its gradient: that calls ``f`` again.

    A network of many equal layers then needs memory for what passes between them, and for the
    inside of one of them at a time.

    Example:
        >>> layer = tf.recompute_grad(lambda x: tf.tanh(tf.layers.dense(x, 512, name="layer")))
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        scope = get_variable_scope()

        @custom_gradient
        def computed(*inputs: Any) -> Any:
            def gradient(*grads: Any, variables: Any = None) -> Any:
                used = list(variables or ())
                ready = [convert_to_tensor(grad) for grad in grads]
                # Nothing of the second computation begins before the gradient has come so far.
                held = barrier_op([*inputs, *ready])
                again, arrived = held[: len(inputs)], held[len(inputs) :]
                graph = get_default_graph()
                with variable_scope(scope, reuse=True), graph.name_scope("recomputed"):
                    results = f(*again, **kwargs)
                results = list(results) if isinstance(results, list | tuple) else [results]
                # What came before depends on the variables, too: that is another's business.
                sources = [*again, *used]
                found = gradients(results, sources, grad_ys=arrived, stop_gradients=again)
                of_inputs, of_variables = found[: len(inputs)], found[len(inputs) :]
                return of_inputs if variables is None else (of_inputs, of_variables)

            return f(*inputs, **kwargs), gradient

        return computed(*args)

    return decorated
