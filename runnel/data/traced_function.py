"""The function of a transformation as a part of the graph.

It is called once, with placeholders; what it adds to the graph is its body. What the body takes
from outside it captures: constants and variables as they are, anything else as an argument, whose
value is that of the step that makes the dataset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runnel.data.element_structure import (
    as_elements,
    flatten,
    from_components,
    pack_as,
    structure_of,
    to_components,
)
from runnel.data.function_effects import ancestors, with_effects
from runnel.graph.graph import Graph, control_dependencies, device, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.ops.constants import placeholder
from runnel.ops.data.function_ops import GraphFunction, GraphFunctions, described


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """A function of elements: what it captures, and what it gives."""

    attr: Any
    """The value of an attribute that names it."""
    captures: tuple[Tensor, ...]
    structure: Any
    elements: Any
    """What it gave when it was traced."""


class _Bodies(set[Operation]):
    """The operations of a graph that are in functions: whoever calls those has their effects."""


def trace(function: Callable[..., Any], structures: list[Any], what: str) -> TracedFunction:
    """``function`` of elements of ``structures``; a tuple alone is given as several arguments."""
    graph = get_default_graph()
    before = len(graph.get_operations())
    title = re.sub(r"\W", "_", getattr(function, "__name__", type(function).__name__)).strip("_")
    name = f"Dataset_{what}_{title or 'function'}"
    with control_dependencies(None), device(None), graph.name_scope(name) as scope:
        arguments = [
            [placeholder(*place.component) for place in flatten(structure)]
            for structure in structures
        ]
        values = [
            from_components(structure, tensors)
            for structure, tensors in zip(structures, arguments, strict=True)
        ]
        if len(values) == 1 and type(values[0]) is tuple:
            values = list(values[0])
        made = function(*values)
        # A list is more likely what an operation with several outputs gave than one tensor.
        elements = as_elements(tuple(made) if isinstance(made, list) else made)
        structure = structure_of(elements)
        outputs = to_components(structure, elements)
        inner = graph.attached(_Bodies)
        own = [op for op in graph.get_operations()[before:] if op not in inner]
        outputs = with_effects(outputs, own)
    body = graph.get_operations()[before:]
    inner.update(body)
    skip_op_ids(-len(body))  # in TensorFlow they are not of this graph
    captures = _captures(outputs, set(body))
    made_of = GraphFunction(
        tuple(tensor for some in arguments for tensor in some), captures, tuple(outputs)
    )
    graph.attached(GraphFunctions)[scope] = made_of
    return TracedFunction(described(scope, made_of), captures, structure, elements)


def trace_state(
    function: Callable[..., Any],
    state: Any,
    structure: Any,
    what: str,
    new_state: Callable[[Any], Any],
) -> tuple[TracedFunction, Any]:
    """``function`` of a state and an element; the state's structure, which holds for all of them.

    ``new_state`` finds the structure of the next state in that of what the function gives. Where
    the next state has another shape, the function is traced again with what both may be.
    """
    while True:
        traced = trace(function, [state, structure], what)
        before, after = flatten(state), flatten(new_state(traced.structure))
        for name, kinds in (
            ("types", [[place.type for place in some] for some in (before, after)]),
            ("classes", [[place.kind for place in some] for some in (before, after)]),
        ):
            if kinds[0] != kinds[1]:
                raise TypeError(
                    f"The element {name} for the new state must match the initial state. Expected "
                    f"{kinds[0]}; got {kinds[1]}."
                )
        merged = [a.merged(b) for a, b in zip(before, after, strict=True)]
        if merged == before:
            return traced, state
        state = pack_as(state, merged)


def dataset_factory(graph: Graph, variant: Tensor, name: str) -> TracedFunction:
    """What makes a dataset, as a function without arguments; an error if it needs any."""
    _require_by_value(variant)
    made_of = GraphFunction((), (), (variant,))
    graph.attached(GraphFunctions)[name] = made_of
    return TracedFunction(described(name, made_of), (), None, None)


def _captures(outputs: list[Tensor], body: set[Operation]) -> tuple[Tensor, ...]:
    """The tensors from outside of ``body`` that ``outputs`` depend on."""
    needed = ancestors([tensor.op for tensor in outputs], body)
    taken = [*outputs, *(tensor for op in needed for tensor in op.inputs)]
    found = {t: None for t in taken if t.op not in body and not _is_shared(t)}
    return tuple(sorted(found, key=lambda tensor: tensor.name))


def _is_shared(tensor: Tensor) -> bool:
    """Whether each call takes it as it is: constants, variables, queues and the like."""
    op = tensor.op
    if op.type in _READS and _is_state(op.inputs[0]):
        return True  # of a variable: its value when the function is called
    return op.type == "Const" or _is_state(tensor)


_READS = {"Identity", "ReadVariableOp"}


def _is_state(tensor: Tensor) -> bool:
    return tensor.op.op_def.variable or tensor.dtype.is_ref_dtype or tensor.dtype.name == "resource"


_MAY_LOOK = {"ReadFile", "MatchingFiles"}


def _require_by_value(variant: Tensor) -> None:
    """An error if a dataset needs a placeholder or state to be made."""
    seen: set[Operation] = set()
    left = [variant.op]
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        left += [tensor.op for tensor in op.inputs]
        is_dataset = any(output.dtype.name == "variant" for output in op.outputs)
        stateful = op.op_def.stateful and not is_dataset and op.type not in _MAY_LOOK
        if stateful or op.type.startswith("Placeholder"):
            raise ValueError(
                "Failed to create a one-shot iterator for a dataset. "
                "`Dataset.make_initializable_iterator()` is more general: its initializer can be "
                f"fed, and use state. Cannot capture {op.name!r} (type: {op.type}) by value."
            )
