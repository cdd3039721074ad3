"""Collectives: each of a group of devices gives a value, and all get what these make together.

The operation of one member is in its own graph, or in one graph with the others. Members are the
devices whose operations have the same ``group_key``; operations with the same ``instance_key``
belong together. All members must run theirs: each waits for the others.
"""

from __future__ import annotations

import zlib
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.device import parsed_device
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import TensorShape
from runnel.queues import exchanges
from runnel.queues.collective_call import Begin, Call
from runnel.queues.joint_calls import Joint

_WHO = ["group_size: int", "group_key: int", "instance_key: int"]
_HOW = ["communication_hint: string = 'auto'", "timeout_seconds: float = 0"]
HINTS = ("auto", "ring", "nccl")
"""How members may exchange: as is best, by the tasks' connections, or through XLA's collectives."""
_NUMBERS = "T: {float32, float16, float64, int32, int64}"
_ANY = "T: {bool, float32, float16, float64, int32, int64}"


def _op(name: str, inputs: str, attrs: list[str]) -> OpDef:
    return register_op(
        name,
        inputs=inputs,
        outputs="data: T",
        attrs=attrs,
        blocking=True,
        differentiable=False,
    )


reduce_op = _op(
    "CollectiveReduce",
    "input: T",
    [
        "T: {bfloat16, float32, float16, float64, int32, int64}",
        *_WHO,
        "merge_op: {'Min', 'Max', 'Mul', 'Add'}",
        "final_op: {'Id', 'Div'}",
        "subdiv_offsets: list(int)",
        "wait_for: list(int) = []",
        *_HOW,
    ],
)
gather_op = _op("CollectiveGather", "input: T", [_NUMBERS, *_WHO, "shape: shape", *_HOW])
send_op = _op("CollectiveBcastSend", "input: T", [_ANY, *_WHO, "shape: shape", *_HOW])
receive_op = _op("CollectiveBcastRecv", "", [_ANY, *_WHO, "shape: shape", *_HOW])


@reduce_op.shape
def _(input):
    return input.dims


@gather_op.shape
@send_op.shape
def _(input, *, shape):
    return shape._dims


@receive_op.shape
def _(*, shape):
    return shape._dims


@reduce_op.kernel
def _(xp, input, *, waiter, operation, merge_op, final_op):
    value, divides = _held(waiter, operation, input), final_op == "Div"
    empty = waiter.resources.collectives.buffers.empty
    begin = exchanges.all_reduce(value, merge_op, divides, empty)
    return _started(waiter, operation, begin, Joint("reduce", value, merge_op, divides))


@gather_op.kernel
def _(xp, input, *, waiter, operation):
    value = _held(waiter, operation, input)
    return _started(waiter, operation, exchanges.all_gather(value), Joint("gather", value))


@send_op.kernel
def _(xp, input, *, waiter, operation):
    value = _held(waiter, operation, input)
    return _started(waiter, operation, exchanges.broadcast_send(value), Joint("send", value))


@receive_op.kernel
def _(xp, *, waiter, operation):
    return _started(waiter, operation, exchanges.broadcast_receive(), Joint("receive"))


def _held(waiter: Any, operation: Any, value: Any) -> Any:
    return waiter.resources.collectives.held(value, operation.attrs["communication_hint"])


def _started(waiter: Any, operation: Any, begin: Begin, joint: Joint) -> Any:
    attrs, device = operation.attrs, parsed_device(operation.device)
    member = f"{device.device_type or 'CPU'}:{device.device_index or 0}"
    size, group, instance = (attrs[k] for k in ("group_size", "group_key", "instance_key"))
    collectives = waiter.resources.collectives
    seconds, hint = attrs["timeout_seconds"], attrs["communication_hint"]
    return collectives.start(
        Call(member, group, size, instance, begin, waiter, seconds, joint, hint)
    )


# In graphs --------------------------------------------------------------------------------------


def all_reduce(
    t: Any,
    group_size: int,
    group_key: int = 1,
    instance_key: int | None = None,
    merge_op: str = "Add",
    final_op: str = "Id",
    communication_hint: str = "auto",
    timeout: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """What the values of all members give together, at each of them the same bits.

    ``final_op="Div"`` divides by the number of members: with ``Add``, the mean. Without an
    ``instance_key``, operations of the same name in the members' graphs belong together. After
    ``timeout`` seconds, unless that is 0, it fails, here and at the other members.

    ``communication_hint`` is ``ring`` for the tasks' own connections, ``nccl`` for XLA's
    collectives (NCCL on GPUs, Gloo on CPUs), which every task's server must have been started with
    (``config.experimental.collective_nccl = True``), ``auto`` for these between GPUs.

    Example:
        >>> mean = tf.collectives.all_reduce(gradient, group_size=4, final_op="Div")
    """
    tensor = convert_to_tensor(t, name="input")
    name = name or "CollectiveReduce"
    attrs = _attrs(group_size, group_key, instance_key, communication_hint, timeout, name)
    attrs |= {"merge_op": merge_op, "final_op": final_op, "subdiv_offsets": [0]}
    return reduce_op(tensor, name=name, **attrs)


def all_gather(
    t: Any,
    group_size: int,
    group_key: int = 1,
    instance_key: int | None = None,
    uneven: bool = False,
    communication_hint: str = "auto",
    timeout: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """The values of all members, one behind the other along the first dimension.

    Members whose values have different numbers of rows must say that they are ``uneven``.
    """
    tensor = convert_to_tensor(t, name="input")
    shape = tensor.get_shape()
    if shape.ndims is not None:
        if shape.ndims == 0:
            raise ValueError(
                "all_gather joins values along their first dimension; this is a scalar"
            )
        first = None if uneven else shape.as_list()[0]
        shape = TensorShape([None if first is None else first * group_size, *shape.as_list()[1:]])
    name = name or "CollectiveGather"
    attrs = _attrs(group_size, group_key, instance_key, communication_hint, timeout, name)
    return gather_op(tensor, name=name, shape=shape, **attrs)


def broadcast_send(
    t: Any,
    group_size: int,
    group_key: int = 1,
    instance_key: int | None = None,
    communication_hint: str = "auto",
    timeout: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Gives ``t`` to all other members, which :func:`broadcast_recv`."""
    tensor = convert_to_tensor(t, name="input")
    name = name or "CollectiveBcast"
    attrs = _attrs(group_size, group_key, instance_key, communication_hint, timeout, name)
    return send_op(tensor, name=name, shape=tensor.get_shape(), **attrs)


def broadcast_recv(
    shape: Any,
    dtype: Any,
    group_size: int,
    group_key: int = 1,
    instance_key: int | None = None,
    communication_hint: str = "auto",
    timeout: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """What one member gives by :func:`broadcast_send`."""
    name = name or "CollectiveBcast"
    attrs = _attrs(group_size, group_key, instance_key, communication_hint, timeout, name)
    return receive_op(name=name, T=as_dtype(dtype), shape=TensorShape(shape), **attrs)


def _attrs(
    group_size: int, group_key: int, instance_key: int | None, hint: str, timeout: float, name: str
) -> dict[str, Any]:
    if group_size < 1:
        raise ValueError(f"group_size is {group_size}; a group has at least one member")
    if hint not in HINTS:
        raise ValueError(f"communication_hint is {hint!r}; it is one of {', '.join(HINTS)}")
    if instance_key is None:
        # Members build alike, so that the same name means the same instance.
        scoped = get_default_graph().unique_name(name, mark_as_used=False)
        instance_key = zlib.crc32(scoped.encode()) & 0x7FFFFFFF
    return {
        "group_size": group_size,
        "group_key": group_key,
        "instance_key": instance_key,
        "communication_hint": hint,
        "timeout_seconds": float(timeout),
    }
