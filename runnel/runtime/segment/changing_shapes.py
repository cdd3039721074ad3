"""Finds what takes other shapes in every step, in a segment that is not worth compiling for each.

A picture has ever another number of boxes, but the layers over the picture, forward and backward,
keep their shapes and are most of the work. So some interpreted runs are watched. What they give in
the same shape each time compiles once, apart from the rest, which stays interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node
from runnel.runtime.state.observer import SegmentRun, TransferRun

_RUNS = 3
"""How many runs are watched, each with other shapes."""
_SMALL = 16
"""Elements of an array of integers that may say how large something else is."""
_SHARE = 0.5
"""Of the time of a run, what must be spent on equal shapes for them to be compiled apart."""


class ChangingShapes:
    """What the values of a segment were in the runs that it observes (``StepObserver``).

    Several threads may run the segment: what one notes is true whatever the others do.
    """

    by_operation = True

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._seen: dict[int, set[Any]] = {}
        """Of each value, the shapes that it had."""
        self._nanoseconds: dict[Node, int] = {}
        self._signatures: list[Any] = []

    def begin(self, signature: Any, inputs: Sequence[Any]) -> bool:
        """Takes note of a run that begins; False where one with this signature was watched."""
        if signature in self._signatures:
            return False
        self._signatures.append(signature)
        for value, array in zip(self._segment.inputs, inputs, strict=True):
            self._note(value, array)
        return True

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        self._nanoseconds[node] = self._nanoseconds.get(node, 0) + end - start
        if not (node.op_def.updates or node.op_def.overwrites):  # these give what they leave first
            for value, array in zip(node.outputs, outputs, strict=False):
                self._note(value, array)

    def segment(self, run: SegmentRun) -> None:
        """A compiled segment ran: none does in an interpreted one."""

    def transfer(self, run: TransferRun) -> None:
        """A value was moved: none is inside of a segment."""

    def _note(self, value: int, array: Any) -> None:
        seen: Any = np.shape(array)
        if isinstance(array, np.ndarray | np.generic) and array.size <= _SMALL:
            if array.dtype.kind in "iu":
                seen = seen, array.tobytes()
        self._seen.setdefault(value, set()).add(seen)

    @property
    def is_known(self) -> bool:
        """True when enough runs have been watched."""
        return len(self._signatures) >= _RUNS

    def nodes(self) -> list[Node]:
        """The nodes that take or give values of changing shapes; none where they are the most."""
        changing = {value for value, seen in list(self._seen.items()) if len(seen) > 1}
        nodes = [
            node
            for node in self._segment.nodes
            if not changing.isdisjoint((*node.inputs, *node.outputs))
        ]
        spent = sum(self._nanoseconds.get(node, 0) for node in nodes)
        return nodes if spent < (1 - _SHARE) * sum(list(self._nanoseconds.values())) else []
