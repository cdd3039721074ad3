"""Cuts a segment around what is better interpreted for the shapes that come.

Clustering decides what compiles before shapes are known. For concrete shapes a loop may turn out to
have no compiled form: a variable changes its shape, or branches return different ones. Then it runs
dynamically for these shapes, and the code before and after it is compiled. The same is done around
what takes other shapes in every step (``changing_shapes``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import replace
from typing import Any, Protocol

from runnel.passes.clusters.cluster import Segment, cluster
from runnel.passes.program.program import Node, Program, copied
from runnel.passes.program.state_access import StateAccess
from runnel.runtime.state.step_context import StepContext


class Runner(Protocol):
    """What runs a piece."""

    segment: Segment

    def run(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The outputs for ``inputs``."""
        ...


class CutSegment:
    """A segment as pieces that run one after the other, each in the tier that pays."""

    def __init__(self, segment: Segment, pieces: list[Runner]) -> None:
        self._inputs = segment.inputs
        self._outputs = segment.outputs
        self._pieces = [
            (piece.run, piece.segment.inputs, piece.segment.outputs) for piece in pieces
        ]

    def run(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The outputs for ``inputs``; each piece stores what it has changed."""
        values = dict(zip(self._inputs, inputs, strict=True))
        for run, taken, given in self._pieces:
            results = run([values[value] for value in taken], context)
            values.update(zip(given, results, strict=True))
        return [values[value] for value in self._outputs]


def cut_around(
    nodes: Collection[Node],
    program: Program,
    segment: Segment,
    access: StateAccess,
    device: str,
    bind: Callable[[Segment], Runner],
) -> CutSegment:
    """``segment`` of ``program`` with ``nodes`` left to the host."""
    copies = copied(segment.nodes)
    feeds = {value: value for value in segment.inputs}
    part = Program(list(copies.values()), feeds, segment.outputs, program.infos)
    around = copy(access)
    around.on_host = access.on_host | {copies[node] for node in nodes}
    pieces = cluster(part, around, device)
    return CutSegment(segment, [bind(replace(piece, device=segment.device)) for piece in pieces])
