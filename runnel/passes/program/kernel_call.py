"""Binds a node to its kernel: from a registered function to a call over flat inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.errors import UnimplementedError
from runnel.graph.registry import INTERPRETED, Kernel, keyword_only
from runnel.passes.program.program import Node


def select(node: Node, device: str, tier: str) -> Kernel:
    """The kernel for ``node``, or an error that lists those there are."""
    kernel = node.op_def.select_kernel(device, node.dtype, tier)
    if kernel is None:
        registered = ", ".join(k.serving for k in node.op_def.kernels) or "none"
        dtype = node.dtype
        raise UnimplementedError(
            None,
            node.op,
            f"No kernel of {node.op_def.name} serves {dtype.name if dtype else 'this type'} on "
            f"{device} ({tier}). Registered: {registered}. "
            f"Register one with runnel.get_op_def({node.op_def.name!r}).kernel.",
        )
    return kernel


def bind(
    kernel: Kernel, node: Node, xp: Any, check: Any, platform: str = "cpu"
) -> Callable[..., Any]:
    """``kernel`` as a function of the node's flat inputs.

    That of a random op takes the stream after the inputs, and returns after the outputs the
    number of counters by which it advanced.
    """
    named: dict[str, Any] = {}
    for name in kernel.parameters:
        if name == "check":
            named[name] = check
        elif name == "platform":
            named[name] = platform
        elif name == "operation":
            named[name] = node.op
        elif name != "stream":
            named[name] = node.attrs[name]
    function = kernel.function
    op_def, attrs = node.op_def, node.attrs
    if op_def.random is not None:
        settings = {name: attrs[name] for name in keyword_only(op_def.random)}
        reserved, single = partial(op_def.random, **settings), len(node.outputs) == 1

        def draw(*flat: Any) -> Any:
            *inputs, stream = flat
            result = function(xp, *op_def.group(inputs, attrs), **named, stream=stream)
            outputs = (result,) if single else result
            return *outputs, reserved(np.shape(outputs[0]))

        return draw
    if len(node.outputs) == 1 and op_def.outputs[0].is_list:
        # A kernel returns a list for a list output, also for a list of one.
        return lambda *flat: function(xp, *op_def.group(flat, attrs), **named)[0]
    if op_def.has_list_inputs:
        places = _places(node)

        def grouped(*flat: Any) -> Any:
            found = [flat[p] if type(p) is int else list(flat[p]) for p in places]
            return function(xp, *found, **named)

        return grouped
    return _named_by(function, xp) or partial(function, xp, **named)


def interpreted(node: Node, device: str) -> Callable[..., Any]:
    """The interpreter's kernel of ``node`` as a function of its flat inputs."""
    return bind(select(node, device, INTERPRETED), node, np, fail_now)


_CALLS = {
    2: (lambda xp, x: xp.f(x)).__code__.co_code,
    3: (lambda xp, x, y: xp.f(x, y)).__code__.co_code,
}
"""By the number of parameters: what a kernel does that only calls a function of its namespace."""


def _named_by(function: Any, xp: Any) -> Callable[..., Any] | None:
    """The function of ``xp`` that is all of a kernel, if so: half the cost of a small addition."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_code != _CALLS.get(code.co_argcount) or code.co_freevars:
        return None
    return getattr(xp, code.co_names[0])


def _places(node: Node) -> list[Any]:
    """Where the arguments of a kernel are in its flat inputs: an index, or a slice for a list."""
    places: list[Any] = []
    start = 0
    for argument in node.op_def.inputs:
        count = argument.count(node.attrs)
        places.append(slice(start, start + count) if argument.is_list else start)
        start += count
    return places


def blocking(node: Node) -> Callable[..., Any]:
    """The kernel of a blocking op as a function of its waiter and the node's flat inputs."""
    kernel = select(node, "CPU", INTERPRETED)
    names = [name for name in kernel.parameters if name != "waiter"]
    known: dict[str, Any] = {"check": fail_now, "platform": "cpu", "operation": node.op}
    named = {name: known[name] if name in known else node.attrs[name] for name in names}
    function, op_def, attrs = kernel.function, node.op_def, node.attrs

    if op_def.has_list_inputs:
        return lambda waiter, *flat: function(
            np, *op_def.group(flat, attrs), waiter=waiter, **named
        )
    return lambda waiter, *flat: function(np, *flat, waiter=waiter, **named)


class CheckFailed(Exception):
    """A kernel's check did not hold (interpreted tier); carries the explanation."""


def fail_now(holds: Any, explain: Callable[[], str]) -> None:
    """The interpreter's ``check``: raises at once."""
    if not holds:
        raise CheckFailed(explain())
