"""One call of ``tf.gradients``: the state of its thread while it adds operations to a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from runnel.control_flow.guards import GuardAnalysis
from runnel.graph.graph import Graph


@dataclass(slots=True)
class Differentiation:
    """A call of ``tf.gradients`` that is adding operations."""

    source: str
    """The name under which it keeps the gradients of TensorArrays."""
    guards: GuardAnalysis = field(default_factory=GuardAnalysis)


class _Calls(threading.local):
    """The calls of this thread for one graph, innermost last: a gradient function may make one."""

    def __init__(self) -> None:
        self.stack: list[Differentiation] = []


@contextmanager
def differentiation(graph: Graph, source: str) -> Iterator[None]:
    """A block in which a call of ``tf.gradients`` adds operations to ``graph``."""
    calls = graph.attached(_Calls).stack
    calls.append(Differentiation(source))
    try:
        yield
    finally:
        calls.pop()
        if calls:
            calls[-1].guards = GuardAnalysis()  # the call inside may have replaced inputs


def guards_of(graph: Graph) -> GuardAnalysis:
    """The guards of the operations of ``graph``, as far as this call has found them."""
    calls = graph.attached(_Calls).stack
    return calls[-1].guards if calls else GuardAnalysis()


def array_gradients_of(graph: Graph) -> str:
    """The name under which this call keeps the gradients of TensorArrays."""
    calls = graph.attached(_Calls).stack
    return calls[-1].source if calls else "gradients"
