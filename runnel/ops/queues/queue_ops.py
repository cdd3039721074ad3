"""The operations behind ``tf.FIFOQueue`` and its kin.

A handle denotes a queue of the session. Operations on it may have to wait: they are *blocking*
(see ``runnel.graph.registry.OpDef``). What they do is in ``runnel.queues``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import DType, int64
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, TensorShape, format_dims
from runnel.ops.sampling.philox import PhiloxStream, words_at
from runnel.queues.elements import InOrder, Prioritized, Shuffled
from runnel.queues.queue import Queue

_WHO = ["container: string = ''", "shared_name: string = ''"]
_DRAWN_AT_ONCE = 256

R = TypeVar("R")


def denoted(handle: Any, kind: type[R]) -> R:
    """What ``handle`` denotes at run time."""
    if isinstance(handle, np.ndarray) and handle.ndim == 0:
        handle = handle[()]
    if not isinstance(handle, kind):
        raise InvalidArgumentError(
            None,
            None,
            f"A {kind.__name__.lower()} is expected here, not a {type(handle).__name__.lower()}",
        )
    return handle


# Making queues ----------------------------------------------------------------------------------

Make = Callable[[str, Operation], Queue]
_makes: dict[str, Make] = {}
_component_attrs: dict[str, Callable[[Operation], tuple[list[DType], list[Dims] | None]]] = {}


def _types_and_shapes(operation: Operation) -> tuple[list[DType], list[Dims] | None]:
    shapes: Sequence[TensorShape] = operation.attrs["shapes"]
    return list(operation.attrs["component_types"]), [s._dims for s in shapes] or None


def _with_priority(operation: Operation) -> tuple[list[DType], list[Dims] | None]:
    types, shapes = _types_and_shapes(operation)
    return [int64, *types], [(), *(shapes or [None] * len(types))]


def _queue_op(
    name: str, make: Make, components: Any = _types_and_shapes, attrs: Sequence[str] = ()
) -> OpDef:
    """Registers the op that makes a kind of queue, and the older one with a string handle."""
    optional = " = []"
    types = "component_types: list(type) >= 0 = []"
    if components is not _with_priority:
        types = "component_types: list(type) >= 1"
    else:
        optional = ""
    all_attrs = [
        types,
        f"shapes: list(shape) >= 0{optional}",
        "capacity: int = -1",
        *attrs,
        *_WHO,
    ]
    for op_name, handle in ((name, "handle: Ref(string)"), (f"{name}V2", "handle: resource")):
        made = register_op(
            op_name, outputs=handle, attrs=all_attrs, blocking=True, differentiable=False
        )
        is_old = op_name == name
        made.shape((lambda: (2,)) if is_old else (lambda: ()))
        _component_attrs[op_name] = components
        _makes[op_name] = make

        @made.kernel
        def _(xp, *, waiter, operation):
            return (queue_handle(operation, waiter.resources),)

    return made


def makes_queue(operation: Operation) -> bool:
    """Whether ``operation`` gives the handle of a queue that it makes."""
    return operation.type in _makes


def queue_handle(operation: Operation, resources: Any) -> np.ndarray:
    """The handle of the queue that ``operation`` makes among ``resources``, made if need be."""
    make = _makes[operation.type]
    return resources.handle(
        operation,
        Queue,
        lambda shared: make(shared, operation),
        lambda present: _check_shared(present, make("", operation)),
    )


def described(queue: Queue) -> dict[str, Any]:
    """What two queues must agree on to be one, in words and numbers."""
    return {
        "type": queue.kind,
        "capacity": queue.capacity,
        "component types": _names(queue.types),
        "component shapes": _formatted(queue.shapes),
        "min_after_dequeue": queue.minimum,
    }


def _check_shared(present: Queue, wanted: Queue) -> None:
    theirs = described(wanted)
    for what, ours in described(present).items():
        if ours != theirs[what]:
            raise InvalidArgumentError(
                None,
                None,
                f"Shared queue {present.name!r} has {what} {ours} but requested {what} was "
                f"{theirs[what]}. Give one of them another shared_name",
            )


def _names(types: Sequence[DType]) -> str:
    return f"[{', '.join(t.name for t in types)}]"


def _formatted(shapes: Sequence[Dims] | None) -> str:
    return f"[{', '.join(map(format_dims, shapes or ()))}]"


def _make_fifo(name: str, operation: Operation) -> Queue:
    types, shapes = _types_and_shapes(operation)
    return Queue("FIFOQueue", name, operation.attrs["capacity"], types, shapes, InOrder())


def _make_padding(name: str, operation: Operation) -> Queue:
    types, shapes = _types_and_shapes(operation)
    capacity = operation.attrs["capacity"]
    return Queue("PaddingFIFOQueue", name, capacity, types, shapes, InOrder(), pads=True)


def _make_priority(name: str, operation: Operation) -> Queue:
    types, shapes = _with_priority(operation)
    return Queue("PriorityQueue", name, operation.attrs["capacity"], types, shapes, Prioritized())


def _make_shuffle(name: str, operation: Operation) -> Queue:
    types, shapes = _types_and_shapes(operation)
    attrs = operation.attrs
    capacity, minimum = attrs["capacity"], attrs["min_after_dequeue"]
    if minimum < 0 or 0 <= capacity <= minimum:
        raise InvalidArgumentError(
            None,
            None,
            f"min_after_dequeue {minimum} must be at least 0 and less than the capacity {capacity}",
        )
    elements = Shuffled(RandomWords(attrs["seed"], attrs["seed2"]))
    return Queue("RandomShuffleQueue", name, capacity, types, shapes, elements, minimum)


class RandomWords:
    """A source of 32 random bits at a time, those that TensorFlow's queues and shuffles draw.

    Two zeros: the source begins anywhere. ``drawn`` words are passed over.
    """

    def __init__(self, seed: int, seed2: int, drawn: int = 0) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
        self.go_on_from([seed, seed2, drawn])

    def go_on_from(self, state: list[int]) -> None:
        """Goes on where :meth:`state` said that a source stood."""
        seed, seed2, drawn = state
        self._seeds = (seed, seed2)
        blocks, self._place = divmod(drawn, 4 * _DRAWN_AT_ONCE)
        self._stream = PhiloxStream.from_seeds(seed, seed2).skip(blocks * _DRAWN_AT_ONCE)
        self._before = blocks * 4 * _DRAWN_AT_ONCE
        self._block = self._drawn()

    def _drawn(self) -> list[int]:
        drawn = words_at(np, self._stream.words(), np.arange(_DRAWN_AT_ONCE, dtype=np.uint32))
        return np.stack(drawn, axis=-1).ravel().tolist()

    def __call__(self) -> int:
        place = self._place
        if place == len(self._block):
            self._before += place
            self._stream = self._stream.skip(_DRAWN_AT_ONCE)
            self._block = self._drawn()
            place = 0
        self._place = place + 1
        return self._block[place]

    def state(self) -> list[int]:
        """The arguments that make a source which goes on from here."""
        return [*self._seeds, self._before + self._place]


fifo_op = _queue_op("FIFOQueue", _make_fifo)
padding_op = _queue_op("PaddingFIFOQueue", _make_padding)
priority_op = _queue_op("PriorityQueue", _make_priority, _with_priority)
shuffle_op = _queue_op(
    "RandomShuffleQueue",
    _make_shuffle,
    attrs=["min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"],
)


def component_dims(handle: Tensor, count: int) -> list[Dims]:
    """The static shapes of the components of the queue that ``handle`` denotes."""
    components = _component_attrs.get(handle.op.type)
    shapes = components(handle.op)[1] if components is not None else None
    return shapes if shapes is not None and len(shapes) == count else [None] * count


# Using queues -----------------------------------------------------------------------------------


def _on_queue(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> tuple[Any, Any]:
    """Registers an op on a queue: for a resource handle, and the older one for a string."""
    made = []
    for op_name, kind in ((f"{name}V2", "resource"), (name, "Ref(string)")):
        made.append(
            register_op(
                op_name,
                inputs=f"handle: {kind}, {inputs}" if inputs else f"handle: {kind}",
                outputs=outputs,
                attrs=list(attrs),
                blocking=True,
                differentiable=False,
            )
        )
    return made[0], made[1]


_PUT = ["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"]
_TAKE = ["component_types: list(type) >= 1", "timeout_ms: int = -1"]

enqueue_ops = _on_queue("QueueEnqueue", "components: Tcomponents", attrs=_PUT)
enqueue_many_ops = _on_queue("QueueEnqueueMany", "components: Tcomponents", attrs=_PUT)
dequeue_ops = _on_queue("QueueDequeue", "", "components: component_types", _TAKE)
dequeue_many_ops = _on_queue("QueueDequeueMany", "n: int32", "components: component_types", _TAKE)
dequeue_up_to_ops = _on_queue("QueueDequeueUpTo", "n: int32", "components: component_types", _TAKE)
close_ops = _on_queue("QueueClose", attrs=["cancel_pending_enqueues: bool = false"])
size_ops = _on_queue("QueueSize", "", "size: int32")
is_closed_ops = _on_queue("QueueIsClosed", "", "is_closed: bool")

for _op in enqueue_ops:

    @_op.kernel
    def _(xp, handle, components, *, waiter):
        return denoted(handle, Queue).enqueue(components, waiter)


for _op in enqueue_many_ops:

    @_op.kernel
    def _(xp, handle, components, *, waiter):
        return denoted(handle, Queue).enqueue_many(components, waiter)


for _op in dequeue_ops:

    @_op.shape
    def _(handle, *, component_types):
        return component_dims(handle, len(component_types))

    @_op.kernel
    def _(xp, handle, *, waiter, component_types):
        queue = denoted(handle, Queue)
        _check_types(queue, component_types)
        return queue.dequeue(waiter)


for _op in dequeue_many_ops:

    @_op.shape
    def _(handle, n, *, component_types):
        count = constant_value(n)
        rows = None if count is None else int(count)
        if rows is not None and rows < 0:
            raise ValueError(f"n must be >= 0, but is {rows}")
        return _batched(handle, len(component_types), rows)

    @_op.kernel
    def _(xp, handle, n, *, waiter, component_types):
        queue = denoted(handle, Queue)
        _check_types(queue, component_types)
        return queue.dequeue_many(int(n), waiter)


for _op in dequeue_up_to_ops:

    @_op.shape
    def _(handle, n, *, component_types):
        return _batched(handle, len(component_types), None)

    @_op.kernel
    def _(xp, handle, n, *, waiter, component_types):
        queue = denoted(handle, Queue)
        _check_types(queue, component_types)
        return queue.dequeue_many(int(n), waiter, up_to=True)


for _op in close_ops:

    @_op.kernel
    def _(xp, handle, *, waiter, cancel_pending_enqueues):
        return denoted(handle, Queue).close(cancel_pending_enqueues, waiter)


for _op in size_ops:
    _op.shape(lambda handle: ())

    @_op.kernel
    def _(xp, handle, *, waiter):
        return (np.int32(denoted(handle, Queue).size()),)


for _op in is_closed_ops:
    _op.shape(lambda handle: ())

    @_op.kernel
    def _(xp, handle, *, waiter):
        return (np.bool_(denoted(handle, Queue).is_closed),)


def _batched(handle: Tensor, count: int, rows: int | None) -> list[Dims]:
    return [None if dims is None else (rows, *dims) for dims in component_dims(handle, count)]


def _check_types(queue: Queue, wanted: Sequence[DType]) -> None:
    if tuple(wanted) != queue.types:
        raise InvalidArgumentError(
            None,
            None,
            f"The queue {queue.name!r} has components of types {_names(queue.types)}, but this "
            f"operation takes {_names(wanted)}",
        )
