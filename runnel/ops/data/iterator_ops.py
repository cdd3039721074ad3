"""The operations on iterators: made, begun, asked for elements, denoted by strings."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from runnel.checkpoint.element_bytes import StoredVariant
from runnel.graph.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.ops.data.dataset_ops import TYPES, pipeline_of
from runnel.ops.data.declared_types import of_types, require_same
from runnel.ops.data.function_ops import function_named
from runnel.ops.data.optional_ops import OptionalValue
from runnel.ops.queues.queue_ops import denoted
from runnel.pipelines.iterator_state import IteratorState, iterator_of
from runnel.pipelines.pipeline import on_host
from runnel.pipelines.sources import scalar

logger = logging.getLogger("runnel")


def _op(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        blocking=True,
        holds_thread=True,
        differentiable=False,
    )


_WHO = ["shared_name: string", "container: string"]
iterator_op = _op("Iterator", outputs="handle: resource", attrs=[*_WHO, *TYPES])
iterator_v2_op = _op("IteratorV2", outputs="handle: resource", attrs=[*_WHO, *TYPES])
make_op = _op("MakeIterator", "dataset: variant, iterator: resource")
next_op = _op("IteratorGetNext", "iterator: resource", "components: output_types", TYPES)
next_as_optional_op = _op(
    "IteratorGetNextAsOptional", "iterator: resource", "optional: variant", TYPES
)
next_sync_op = _op("IteratorGetNextSync", "iterator: resource", "components: output_types", TYPES)
one_shot_op = _op(
    "OneShotIterator",
    outputs="handle: resource",
    attrs=["dataset_factory: func", *TYPES, "container: string = ''", "shared_name: string = ''"],
)
to_string_op = _op("IteratorToStringHandle", "resource_handle: resource", "string_handle: string")
_ANY = ["output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []"]
from_string_op = _op(
    "IteratorFromStringHandle", "string_handle: string", "resource_handle: resource", _ANY
)
from_string_v2_op = _op(
    "IteratorFromStringHandleV2", "string_handle: string", "resource_handle: resource", _ANY
)
next_as_optional_op.shape(lambda iterator: ())
serialize_op = _op(
    "SerializeIterator",
    "resource_handle: resource",
    "serialized: variant",
    ["external_state_policy: int = 0"],
)
deserialize_op = _op("DeserializeIterator", "resource_handle: resource, serialized: variant")
for _made in (iterator_op, iterator_v2_op, one_shot_op):
    _made.shape(lambda: ())
for _made in (to_string_op, from_string_op, from_string_v2_op):
    _made.shape(lambda given: ())


def _handle(waiter: Any, operation: Operation) -> np.ndarray:
    """The iterator that ``operation`` makes, or shares with another of its name."""
    types, shapes = operation.attrs["output_types"], operation.attrs["output_shapes"]
    return waiter.resources.handle(  # type: ignore[no-any-return]
        operation,
        IteratorState,
        lambda name: IteratorState(name, types, shapes),
        lambda state: require_same(types, shapes, state.types, state.shapes),
    )


for _made in (iterator_op, iterator_v2_op):

    @_made.kernel
    def _(xp, *, waiter, operation):
        return (_handle(waiter, operation),)


@make_op.kernel
def _(xp, dataset, iterator, *, waiter):
    denoted(iterator, IteratorState).start(pipeline_of(dataset), waiter.require_time)
    return ()


@one_shot_op.kernel
def _(xp, *, waiter, operation, dataset_factory):
    handle = _handle(waiter, operation)
    state = denoted(handle, IteratorState)
    if not state.is_started:
        function = function_named(operation, dataset_factory)
        (dataset,) = waiter.subgraph(function.outputs, ())(())
        state.start(pipeline_of(dataset), waiter.require_time, again=False)
    return (handle,)


for _made in (next_op, next_sync_op):

    @_made.shape
    def _(iterator, *, output_shapes):
        return [shape._dims for shape in output_shapes]

    @_made.kernel
    def _(xp, iterator, *, waiter, output_types):
        state = denoted(iterator, IteratorState)
        return of_types(state.next(waiter.require_time, waiter.require_going), output_types)


@next_as_optional_op.kernel
def _(xp, iterator, *, waiter):
    try:
        components = denoted(iterator, IteratorState).next(
            waiter.require_time, waiter.require_going
        )
    except OutOfRangeError:
        return (scalar(OptionalValue(None)),)
    return (scalar(OptionalValue(on_host(components))),)


EXTERNAL_STATE_POLICIES = ("warn", "ignore", "fail")
"""What is done about state that an iterator's functions use, by the number of the attribute."""

serialize_op.shape(lambda iterator: (None,))


@serialize_op.kernel
def _(xp, iterator, *, waiter, external_state_policy):
    policy = EXTERNAL_STATE_POLICIES[external_state_policy]

    def states_outside(operation: str) -> None:
        said = (
            f"A function of the dataset uses state that is not saved with the iterator: {operation}"
        )
        if policy == "fail":
            raise FailedPreconditionError(
                None, None, f"{said}. Remove it, or give external_state_policy='ignore'."
            )
        if policy == "warn":
            logger.warning("%s.", said)

    saved = denoted(iterator, IteratorState).save(waiter.require_time, states_outside)
    out = np.empty(1, object)
    out[0] = StoredVariant("runnel::Iterator", saved)
    return (out,)


@deserialize_op.kernel
def _(xp, iterator, serialized, *, waiter, operation):
    state = denoted(iterator, IteratorState)
    values = np.asarray(serialized, object).reshape(-1)
    if len(values) != 1 or not isinstance(values[0], StoredVariant):
        raise InvalidArgumentError(
            None, None, "A saved iterator is expected here, as SerializeIterator gives it."
        )
    if not state.is_started:
        dataset = _dataset_of(operation.inputs[0].op)
        if dataset is not None:
            (made,) = waiter.subgraph((dataset,), ())(())
            state.start(pipeline_of(made), waiter.require_time, again=False)
    state.restore(values[0].metadata, waiter.require_time)
    return ()


def _dataset_of(iterator: Operation) -> Tensor | None:
    """The dataset that an iterator is begun with, if there is one only, and it needs no feed."""
    begins = [
        op
        for op in iterator.graph.get_operations()
        if op.type == "MakeIterator" and op.inputs[1].op is iterator
    ]
    if len(begins) != 1 or needs_a_feed(begins[0].inputs[0]):
        return None
    return begins[0].inputs[0]


def needs_a_feed(tensor: Tensor) -> bool:
    """Whether a placeholder is needed to compute ``tensor``."""
    seen: set[Operation] = set()
    left = [tensor.op]
    while left:
        op = left.pop()
        if op not in seen:
            seen.add(op)
            if op.type in ("Placeholder", "PlaceholderV2"):
                return True
            left += [one.op for one in op.inputs]
    return False


@to_string_op.kernel
def _(xp, iterator, *, waiter):
    return (scalar(denoted(iterator, IteratorState).handle.encode()),)


for _made in (from_string_op, from_string_v2_op):

    @_made.kernel
    def _(xp, text, *, waiter, output_types, output_shapes):
        found = iterator_of(np.asarray(text).item().decode())
        if output_types:
            require_same(output_types, output_shapes, found.types, found.shapes)
        return (scalar(found),)
