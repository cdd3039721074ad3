"""The operations on iterators: made, begun, asked for elements, denoted by strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.registry import register_op
from runnel.ops.data.dataset_ops import TYPES, pipeline_of
from runnel.ops.data.function_ops import function_named
from runnel.ops.queues.queue_ops import denoted
from runnel.pipelines.iterator_state import IteratorState, iterator_of
from runnel.pipelines.sources import scalar


def _op(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        blocking=True,
        differentiable=False,
    )


_WHO = ["shared_name: string", "container: string"]
iterator_op = _op("Iterator", outputs="handle: resource", attrs=[*_WHO, *TYPES])
iterator_v2_op = _op("IteratorV2", outputs="handle: resource", attrs=[*_WHO, *TYPES])
make_op = _op("MakeIterator", "dataset: variant, iterator: resource")
next_op = _op("IteratorGetNext", "iterator: resource", "components: output_types", TYPES)
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
for _made in (iterator_op, iterator_v2_op, one_shot_op):
    _made.shape(lambda: ())
for _made in (to_string_op, from_string_op, from_string_v2_op):
    _made.shape(lambda given: ())

for _made in (iterator_op, iterator_v2_op):

    @_made.kernel
    def _(xp, *, waiter, operation):
        return (waiter.resources.handle(operation, IteratorState, IteratorState),)


@make_op.kernel
def _(xp, dataset, iterator, *, waiter):
    denoted(iterator, IteratorState).start(pipeline_of(dataset), waiter.require_time)
    return ()


@one_shot_op.kernel
def _(xp, *, waiter, operation, dataset_factory):
    handle = waiter.resources.handle(operation, IteratorState, IteratorState)
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
    def _(xp, iterator, *, waiter):
        return denoted(iterator, IteratorState).next(waiter.require_time)


@to_string_op.kernel
def _(xp, iterator, *, waiter):
    return (scalar(denoted(iterator, IteratorState).handle.encode()),)


for _made in (from_string_op, from_string_v2_op):

    @_made.kernel
    def _(xp, text, *, waiter):
        return (scalar(iterator_of(np.asarray(text).item().decode())),)
