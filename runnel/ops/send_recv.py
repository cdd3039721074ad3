"""Handing a value from one part of a step to another: what an edge that crosses becomes.

These are made by ``passes.placement.partition``, never by users. A pair has one rendezvous key,
which names both devices, the tensor and, in a loop, the iteration. They meet in the rendezvous of
their step (``runnel.queues.rendezvous``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from runnel.graph.errors import FailedPreconditionError
from runnel.graph.registry import register_op
from runnel.queues.batches import taken_over
from runnel.queues.rendezvous import DEAD, Rendezvous

MAY_BE_DEAD = "_may_be_dead"
"""An attribute of a ``_Recv`` whose value lies on a branch, or in a loop on one."""
OUTERMOST = ("0", 0)
"""The frame and iteration of what runs in no loop."""

_ENDS = [
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
]

send_op = register_op(
    "_Send",
    inputs="tensor: T",
    attrs=["T: type", *_ENDS],
    blocking=True,
    differentiable=False,
)

recv_op = register_op(
    "_Recv",
    outputs="tensor: tensor_type",
    attrs=["tensor_type: type", *_ENDS],
    blocking=True,
    differentiable=False,
)


send_many_op = register_op(
    "_SendMany",
    inputs="tensors: T",
    attrs=["T: list(type) >= 1", *_ENDS],
    blocking=True,
    differentiable=False,
)

recv_many_op = register_op(
    "_RecvMany",
    outputs="tensors: tensor_types",
    attrs=["tensor_types: list(type) >= 1", *_ENDS],
    blocking=True,
    differentiable=False,
)


recv_op.shape(lambda: None)


@recv_many_op.shape
def _(*, tensor_types):
    return [None] * len(tensor_types)


@send_many_op.kernel
def _(xp, tensors, *, waiter, operation):
    key = rendezvous_key(operation.attrs, *waiter.iteration)
    values = tuple(map(taken_over, tensors))
    _rendezvous_of(waiter).send(key, values, operation.attrs["recv_device"])
    return ()


@send_op.kernel
def _(xp, tensor, *, waiter, operation):
    key = rendezvous_key(operation.attrs, *waiter.iteration)
    _rendezvous_of(waiter).send(key, taken_over(tensor), operation.attrs["recv_device"])
    return ()


@recv_many_op.kernel
@recv_op.kernel
def _(xp, *, waiter, operation):
    key = rendezvous_key(operation.attrs, *waiter.iteration)
    return _rendezvous_of(waiter).recv(key, waiter)


def send_dead(attrs: Mapping[str, Any], waiter: Any) -> None:
    """Tells who receives that there will be no value: its branch was not taken."""
    key = rendezvous_key(attrs, *waiter.iteration)
    _rendezvous_of(waiter).send(key, DEAD, attrs["recv_device"])


def _rendezvous_of(waiter: Any) -> Rendezvous:
    if waiter.rendezvous is None:
        raise FailedPreconditionError(
            None, None, "_Send and _Recv join the parts of one step; this step is not one of them"
        )
    return waiter.rendezvous


def rendezvous_key(attrs: Mapping[str, Any], frame: str = "0", iteration: int = 0) -> str:
    """The key under which a value is handed over, in TensorFlow's form."""
    edge = _edge_key(
        attrs["send_device"],
        attrs["send_device_incarnation"],
        attrs["recv_device"],
        attrs["tensor_name"],
    )
    return f"{edge};{frame}:{iteration}"


@lru_cache(maxsize=1 << 14)
def _edge_key(send_device: str, incarnation: int, recv_device: str, tensor_name: str) -> str:
    return f"{send_device};{incarnation:016x};{recv_device};{tensor_name}"
