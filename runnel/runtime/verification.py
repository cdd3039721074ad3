"""Checking kernels while they run: each output has the declared type and the inferred shape.

Off by default, since it costs time in every step; the tests switch it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.shapes import compatible_dims, format_dims
from runnel.passes.program import Node

enabled = False


class KernelMismatch(AssertionError):
    """A kernel returned something other than its op declares."""


def verified(call: Callable[..., Any], node: Node) -> Callable[..., Any]:
    """``call`` followed by :func:`verify`."""

    def checked(*args: Any) -> Any:
        result = call(*args)
        verify(node, result)
        return result

    return checked


def verify(node: Node, result: Any) -> None:
    """Raises :class:`KernelMismatch` unless ``result`` is what ``node`` declares."""
    op_def = node.op_def
    if node.op.op_def is not op_def:
        return  # made by a rewrite: the operation's own outputs are something else
    written = len(op_def.updates) + len(op_def.overwrites)
    tensors = [t for t in node.op.outputs if not t.dtype.is_ref_dtype]
    single = written + len(tensors) == 1 and op_def.random is None
    values = [result] if single else list(result)
    for tensor, value in zip(tensors, values[written:], strict=False):
        if tensor.dtype.np_dtype == object:
            continue
        found = np.dtype(getattr(value, "dtype", type(value)))
        if found != tensor.dtype.np_dtype:
            raise KernelMismatch(
                f"{node.op.name} ({op_def.name}) gave {found} for {tensor.name}, "
                f"declared {tensor.dtype.name}"
            )
        if not compatible_dims(np.shape(value), tensor.dims):
            raise KernelMismatch(
                f"{node.op.name} ({op_def.name}) gave shape {np.shape(value)} for {tensor.name}, "
                f"inferred {format_dims(tensor.dims)}"
            )
