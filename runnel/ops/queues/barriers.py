"""``Barrier``: elements whose components come from different steps, put together by a key."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import TensorShape
from runnel.ops.queues.queue_components import shape_list, type_list
from runnel.ops.queues.queue_ops import denoted
from runnel.queues.barrier import BarrierState


def _op(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        blocking=True,
        differentiable=False,
    )


_HANDLE = "handle: Ref(string)"
barrier_op = _op(
    "Barrier",
    outputs=_HANDLE,
    attrs=[
        "component_types: list(type) >= 1",
        "shapes: list(shape) >= 0 = []",
        "capacity: int = -1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
)
insert_op = _op(
    "BarrierInsertMany",
    f"{_HANDLE}, keys: string, values: T",
    attrs=["T: type", "component_index: int"],
)
take_op = _op(
    "BarrierTakeMany",
    f"{_HANDLE}, num_elements: int32",
    "indices: int64, keys: string, values: component_types",
    [
        "component_types: list(type) >= 1",
        "allow_small_batch: bool = false",
        "wait_for_incomplete: bool = false",
        "timeout_ms: int = -1",
    ],
)
close_op = _op("BarrierClose", _HANDLE, attrs=["cancel_pending_enqueues: bool = false"])
ready_size_op = _op("BarrierReadySize", _HANDLE, "size: int32")
incomplete_size_op = _op("BarrierIncompleteSize", _HANDLE, "size: int32")


@barrier_op.shape
def _():
    return (2,)


@barrier_op.kernel
def _(xp, *, waiter, operation, component_types, shapes):
    def make(shared: str) -> BarrierState:
        return BarrierState(shared, component_types, [s._dims for s in shapes] or None)

    return (waiter.resources.handle(operation, BarrierState, make),)


@insert_op.kernel
def _(xp, handle, keys, values, *, waiter, component_index):
    denoted(handle, BarrierState).insert_many(component_index, list(keys), values)
    return ()


@take_op.shape
def _(handle, n, *, component_types):
    return [(None,), (None,), *[None] * len(component_types)]


@take_op.kernel
def _(xp, handle, n, *, waiter, allow_small_batch):
    return denoted(handle, BarrierState).take_many(int(n), allow_small_batch, waiter)


@close_op.kernel
def _(xp, handle, *, waiter, cancel_pending_enqueues):
    denoted(handle, BarrierState).close(cancel_pending_enqueues)
    return ()


for _size_op in (ready_size_op, incomplete_size_op):
    _size_op.shape(lambda handle: ())


@ready_size_op.kernel
def _(xp, handle, *, waiter):
    return (np.int32(denoted(handle, BarrierState).ready_size()),)


@incomplete_size_op.kernel
def _(xp, handle, *, waiter):
    return (np.int32(denoted(handle, BarrierState).incomplete_size()),)


class Barrier:
    """Elements with several components, each put in under the element's key.

    An element leaves when all its components are there; elements leave in the order in which
    their keys first came.

    Example:
        >>> barrier = Barrier([tf.string, tf.int32], shapes=[[], []])
        >>> put_names = barrier.insert_many(0, keys=["k1", "k2"], values=["a", "b"])
        >>> put_numbers = barrier.insert_many(1, keys=["k2", "k1"], values=[2, 1])
        >>> places, keys, (names, numbers) = barrier.take_many(2)
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        self._types = type_list(types)
        known = shape_list(shapes)
        for i, shape in enumerate(known or ()):
            if shape.num_elements() == 0:
                raise ValueError(
                    f"Empty tensors are not supported, but received shape {shape} at index {i}"
                )
        self._shapes = known or [TensorShape(None)] * len(self._types)
        self._barrier_ref = barrier_op(
            component_types=self._types,
            shapes=self._shapes,
            shared_name=shared_name or "",
            name=name,
        )
        self._name = self._barrier_ref.op.name.split("/")[-1]

    @property
    def barrier_ref(self) -> Tensor:
        """The tensor that denotes the barrier."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes the barrier."""
        return self._barrier_ref.op.name

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Puts in one component of the elements under ``keys``."""
        return insert_op(
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            T=self._types[component_index],
            name=name or f"{self._name}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> list[Any]:
        """Places, keys and components of ``num_elements`` complete elements; waits for them.

        With ``allow_small_batch`` there may be fewer once the barrier is closed.
        """
        taken = take_op(
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        indices, keys, values = taken
        count = None if allow_small_batch else constant_value(indices.op.inputs[1])
        rows = TensorShape([None if count is None else int(count)])
        indices.set_shape(rows)
        keys.set_shape(rows)
        for tensor, shape in zip(values, self._shapes, strict=True):
            tensor.set_shape(rows.concatenate(shape))
        return taken

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Lets in no new keys; with ``cancel_pending_enqueues``, no further components either."""
        return close_op(
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete."""
        return ready_size_op(self._barrier_ref, name=name or f"{self._name}_BarrierReadySize")

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack components."""
        return incomplete_size_op(
            self._barrier_ref, name=name or f"{self._name}_BarrierIncompleteSize"
        )
