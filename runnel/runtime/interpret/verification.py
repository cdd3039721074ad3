"""Checks kernels while they run: each output has the declared type and the inferred shape.

It is off by default, since it costs time in every step; the tests switch it on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.shapes import compatible_dims, format_dims
from runnel.passes.program.program import Node, ValueInfo

enabled = False


class KernelMismatch(AssertionError):
    """A kernel returned something other than its op declares."""


def verified(
    call: Callable[..., Any], node: Node, infos: Sequence[ValueInfo]
) -> Callable[..., Any]:
    """``call``, the kernel of ``node``, followed by :func:`verify`; ``infos`` are of all values."""
    if not enabled:
        return call
    outputs = declared(node, infos)

    def checked(*args: Any) -> Any:
        result = call(*args)
        verify(node, outputs, result)
        return result

    return checked


def declared(node: Node, infos: Sequence[ValueInfo]) -> list[ValueInfo]:
    """What ``node`` declares of the values that its kernel gives beside new states."""
    outputs = [infos[value] for value in node.outputs]
    return [info for info in outputs if not info.dtype.is_ref_dtype]


def verify(node: Node, outputs: Sequence[ValueInfo], result: Any) -> None:
    """Raises :class:`KernelMismatch` unless ``result`` is what is declared of the outputs.

    The result has the new values of variables first, and what a random op drew last.
    """
    op_def = node.op_def
    written = len(op_def.updates) + len(op_def.overwrites)
    single = written + len(outputs) == 1 and op_def.random is None
    values = [result] if single else list(result)
    verify_all(node, outputs, values[written:])


def verify_all(node: Node, outputs: Sequence[ValueInfo], values: Sequence[Any]) -> None:
    """Raises :class:`KernelMismatch` unless ``values`` are what is declared of the outputs."""
    what = f"{node.op.name} ({node.op_def.name})"
    for position, (info, value) in enumerate(zip(outputs, values, strict=False)):
        if info.dtype.np_dtype == object:
            continue
        found = np.dtype(getattr(value, "dtype", type(value)))
        if found != info.dtype.np_dtype:
            raise KernelMismatch(
                f"{what} gave {found} for output {position}, declared {info.dtype.name}"
            )
        if not compatible_dims(np.shape(value), info.dims):
            raise KernelMismatch(
                f"{what} gave shape {np.shape(value)} for output {position}, "
                f"inferred {format_dims(info.dims)}"
            )
