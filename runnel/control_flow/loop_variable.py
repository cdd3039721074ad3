"""A variable of a loop, as the operations that carry it from iteration to iteration."""

from __future__ import annotations

from dataclasses import dataclass

from runnel.graph.operation import Operation, Tensor


@dataclass(slots=True)
class LoopVariable:
    """The operations of one loop variable.

    ``enter`` brings its first value in, ``merged`` is its value at the start of an iteration,
    ``switch`` passes that on into the body or out; ``exit`` is its last value. A loop that was
    imported may lack what nothing used.
    """

    enter: Tensor
    merged: Tensor
    switch: Operation | None = None
    exit: Tensor | None = None

    @property
    def start(self) -> Tensor | None:
        """Its value where the body begins."""
        return None if self.switch is None else self.switch.outputs[1]

    @property
    def result(self) -> Tensor:
        """Its value where the body ends."""
        return self.merged.op.inputs[1].op.inputs[0]
