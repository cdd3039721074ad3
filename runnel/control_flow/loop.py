"""``tf.while_loop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten
from runnel.control_flow.while_context import WhileContext
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, format_dims
from runnel.ops.comparison import logical_and
from runnel.ops.constants import constant


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is true.

    ``loop_vars`` is a list or tuple of (structures of) tensors; ``body`` returns the same
    structure, of the same types and shapes. A shape that changes from one iteration to the next
    is declared in ``shape_invariants``. ``back_prop=False`` says that no gradient will be asked
    for. With ``swap_memory`` what a gradient needs of each iteration is kept in the memory of the
    host, where the loop runs on a device that has its own. A list of one loop variable is
    unpacked, unless ``return_same_structure``.

    Example:
        >>> total, _ = tf.while_loop(lambda s, i: i < 5, lambda s, i: (s + i, i + 1), [0, 0])
        >>> tf.Session().run(total)
        10
    """
    tensors = [v for v in flatten(loop_vars) if isinstance(v, Tensor)] if loop_vars else []
    with name_scope(name, "while", tensors):
        if not loop_vars:
            raise ValueError("No loop variables provided")
        if not callable(cond):
            raise TypeError("cond must be callable.")
        if not callable(body):
            raise TypeError("body must be callable.")
        if parallel_iterations < 1:
            raise TypeError("parallel_iterations must be a positive integer.")
        limited = maximum_iterations is not None
        if limited:
            single = len(loop_vars) == 1 and not return_same_structure
            maximum_iterations, cond, body, loop_vars = _limit(
                maximum_iterations, cond, body, loop_vars, single
            )
            if shape_invariants is not None:
                invariants = shape_invariants[0] if single else shape_invariants
                shape_invariants = (TensorShape([]), invariants)
        context = WhileContext(maximum_iterations, parallel_iterations, back_prop, swap_memory)
        if context.outer_context is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = context.build(cond, body, loop_vars, shape_invariants, return_same_structure)
        return result[1] if limited else result


def _limit(
    maximum: Any, cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, single: bool
) -> tuple[Tensor, Callable[..., Any], Callable[..., Any], Any]:
    """The loop with a counter before its variables, which ends it after ``maximum`` iterations."""
    limit = convert_to_tensor(maximum, name="maximum_iterations")
    if limit.dims != ():
        raise ValueError(
            f"maximum_iterations must be a scalar, saw shape: {format_dims(limit.dims)}"
        )
    counter = constant(0, dtype=limit.dtype, name="iteration_counter")
    if single:
        return (
            limit,
            lambda i, v: logical_and(i < limit, cond(v)),
            lambda i, v: (i + 1, body(v)),
            (counter, loop_vars[0]),
        )

    def counted(i: Tensor, variables: Any) -> Any:
        following = i + 1
        result = body(*variables)
        # A body typically returns a tuple, also where the variables are a list.
        if type(result) in (list, tuple) and type(variables) in (list, tuple):
            result = type(variables)(result)
        return following, result

    return limit, lambda i, v: logical_and(i < limit, cond(*v)), counted, (counter, loop_vars)
