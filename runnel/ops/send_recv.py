"""Handing a value from one device to another: what an edge between devices becomes.

These are made by ``passes.placement.partition``, never by users. A pair has one rendezvous key,
which names both devices and the tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.registry import register_op

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
    stateful=True,
    host=True,
    differentiable=False,
)

recv_op = register_op(
    "_Recv",
    outputs="tensor: tensor_type",
    attrs=["tensor_type: type", *_ENDS],
    stateful=True,
    host=True,
    differentiable=False,
)


def rendezvous_key(attrs: Mapping[str, Any], frame: int = 0, iteration: int = 0) -> str:
    """The key under which a value is handed over, in TensorFlow's form."""
    return ";".join(
        [
            attrs["send_device"],
            f"{attrs['send_device_incarnation']:016x}",
            attrs["recv_device"],
            attrs["tensor_name"],
            f"{frame}:{iteration}",
        ]
    )
