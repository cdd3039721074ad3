"""Calls on variables in mapped files: makes values in blocks, refuses oversized ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.errors import ResourceExhaustedError
from runnel.graph.operation import Operation
from runnel.graph.registry import keyword_only
from runnel.mapped_array import available_memory, memory_of
from runnel.ops.array_shape import resolve_shape
from runnel.ops.block_value import BlockValue, Look, WholeBlocks, elementwise
from runnel.passes.program.program import Node


def block_call(node: Node, call: Callable[..., Any], blocks: list[bool]) -> Callable[..., Any]:
    """``call``, the kernel of ``node``, with block values for those outputs that ``blocks`` says.

    Of the arguments, too, some are block values, where the kernel is not the first of its chain.
    """
    kernel = node.op_def.block_kernel
    if node.op_def.name == "Identity":
        return lambda value: value
    if node.op_def.name == "Reshape":
        return _reshaped
    if kernel is None:
        return lambda *args: _made_by(node, elementwise(call, *args))
    known: dict[str, Any] = {**node.attrs, "blocks": blocks}
    names = keyword_only(kernel)
    chosen = partial(kernel, **{name: known[name] for name in names if name != "stream"})
    random = node.op_def.random
    if random is not None:
        settings = {name: node.attrs[name] for name in keyword_only(random)}
        reserved = partial(random, **settings)

        def draw(*flat: Any) -> Any:
            *inputs, stream = flat
            value = _made_by(node, chosen(*inputs, stream=stream))
            return value, reserved(value.shape)

        return draw

    def made(*args: Any) -> Any:
        found = chosen(*args)
        if not isinstance(found, list):
            return _made_by(node, found)
        for value in found:
            _made_by(node, value)
        return found[0] if len(node.outputs) == 1 else found

    return made


def _made_by(node: Node, value: Any) -> Any:
    if isinstance(value, BlockValue):
        value.node = node
    return value


def _reshaped(value: Any, shape: Any) -> Any:
    if not isinstance(value, BlockValue):
        return value.reshape(shape.tolist())

    def _write(array: np.ndarray, look: Look) -> None:
        value.write(array.reshape(value.shape), look)

    dims = resolve_shape(value.shape, shape.tolist())
    found = WholeBlocks(dims, value.dtype, _write)
    found.node = value.node
    return found


def require_memory(call: Callable[..., Any], variable: Operation) -> Callable[..., Any]:
    """``call``, which takes the whole value of a mapped variable, where memory can hold that."""

    def checked(*args: Any) -> Any:
        for value in args:
            require_fits(value, repr(variable.name))
        return call(*args)

    return checked


def part_call(call: Callable[..., Any], variable: Operation) -> Callable[..., Any]:
    """``call``, which gives a part of a mapped variable, with a copy of that in memory."""

    def copied(*args: Any) -> Any:
        part = call(*args)
        require_fits(part, repr(variable.name))
        return np.array(part)

    return copied


def require_fits(value: Any, what: str, op: Operation | None = None) -> None:
    """An error when ``value``, of ``what``, is in a mapped file and larger than free memory."""
    if memory_of(value) is None or value.nbytes <= (free := available_memory()):
        return
    raise ResourceExhaustedError(
        None,
        op,
        f"The whole value of {what} is needed here: {value.nbytes:,} bytes, in a mapped "
        f"file because memory cannot hold them, of which {free:,} bytes are free. Look up the rows "
        "that are needed (tf.nn.embedding_lookup), and train with an optimizer that changes only "
        "the rows of a gradient (tf.contrib.opt.LazyAdamOptimizer in the place of Adam)",
    )
