"""Stretches: parts of a dynamic loop's body, or of a branch, that run as one.

A *stretch* runs in the tier that pays, like a segment of a step (``runtime.segment.tiers``); nodes
that cannot compile run between stretches. The executor of a dynamic loop or branch holds its state,
and stores it when the step has succeeded. So a stretch is a function of values. It takes, after its
inputs, the values of the variables that it reads and its random streams; it returns, after its
outputs, the variables' new values and how far the streams have moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import Any, Protocol

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.shapes import is_fully_defined
from runnel.mapped_array import is_mapped
from runnel.passes.clusters.cluster import Segment, cluster
from runnel.passes.placement.cost_model import TYPICAL, flops
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import structure_of
from runnel.runtime.devices.devices import xla_device
from runnel.runtime.devices.transfer import put
from runnel.runtime.interpret.code import Passed
from runnel.runtime.state.step_context import StepContext

_FEW_NODES = 3
"""Operations on arrays from which on a stretch may be worth a call of its own."""
_CALL_SECONDS = 10e-6
"""What such a call costs at least, interpreted; compiled it is more."""


class StretchRunner(Protocol):
    """What runs a stretch: a ``SegmentRunner`` that is a function of values."""

    segment: Segment
    passed: Passed

    @property
    def is_compiled(self) -> bool:
        """True when it has been compiled, for whatever shapes."""
        ...

    def run(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The outputs for ``inputs``."""
        ...


class Stretch:
    """A part of a program that runs as one."""

    __slots__ = (
        *("run", "nodes", "inputs", "outputs", "reads", "writes", "random", "device"),
        "_runner",
    )

    def __init__(self, runner: StretchRunner) -> None:
        self._runner = runner
        self.run = runner.run
        self.nodes = runner.segment.nodes
        self.inputs = runner.segment.inputs
        self.outputs = runner.segment.outputs
        self.reads: list[tuple[Operation, Node | None]] = runner.passed.reads
        """Variables whose values it takes, each with the node that needs it to have one."""
        self.writes = runner.passed.writes
        self.random = runner.passed.random
        self.device = runner.segment.device
        """Where it runs, if there are several devices."""

    def taker(self, position: int) -> Node:
        """The first node that takes the input at ``position``."""
        value = self.inputs[position]
        return next(node for node in self.nodes if value in node.inputs)

    def placed(self, value: Any) -> Any:
        """``value``, which many runs will take, where a compiled stretch takes it from."""
        if not self._runner.is_compiled or not isinstance(value, np.ndarray) or is_mapped(value):
            return value
        return put(value, None if self.device is None else xla_device(self.device))


MakeRunner = Callable[[Program, Segment, StateAccess], StretchRunner]


class Stretches:
    """Cuts the programs inside loops and conditionals, for one session."""

    def __init__(self, make: MakeRunner, device: str, always: bool) -> None:
        """``make`` binds a segment to the session; ``always`` makes a stretch of all it can."""
        self._make = make
        self._device = device
        self._always = always
        self._parts: dict[int, tuple[Program, list[Node | Stretch]]] = {}

    def parts(
        self, program: Program, access: StateAccess, fixed: Collection[int]
    ) -> list[Node | Stretch]:
        """The stretches of ``program`` and the nodes between them, in the order in which they run.

        ``fixed`` are the values that ``program`` is fed for which a stretch may be compiled.
        """
        known = self._parts.get(id(program))
        if known is None:
            parts: list[Node | Stretch] = []
            for segment in cluster(program, access, self._device, None, fixed):
                if segment.compilable and is_worth_it(segment, program, self._device, self._always):
                    parts.append(Stretch(self._make(program, segment, access)))
                else:
                    parts += segment.nodes
            known = self._parts[id(program)] = program, parts
        return known[1]


def is_worth_it(segment: Segment, program: Program, device: str, always: bool) -> bool:
    """True when there is enough in ``segment`` for a call of its own; ``always`` if anything is."""
    working = [node for node in segment.nodes if _computes(node)]
    if always:
        return bool(working)
    if any(node.op_def.heavy or structure_of(node) is not None for node in working):
        return True
    infos = program.infos
    on_arrays = [
        node
        for node in working
        if any(infos[value].dims != () for value in (*node.inputs, *node.outputs))
    ]
    if len(on_arrays) < _FEW_NODES:
        return False
    place = device if segment.device is None else segment.device.device_type
    return place != "CPU" or sum(map(_least_seconds, on_arrays)) > _CALL_SECONDS


def _least_seconds(node: Node) -> float:
    """What interpreting ``node`` takes at least; no limit where its shapes are not known."""
    tensors = (*node.op.inputs, *node.op.outputs)
    if not all(is_fully_defined(tensor.dims) for tensor in tensors):
        return inf
    return max(TYPICAL["CPU"].light, flops(node.op) / TYPICAL["CPU"].flops)


def _computes(node: Node) -> bool:
    """False for what only names or passes on a value."""
    return not node.op_def.variable and node.op_def.name not in ("Const", "Identity", "NoOp")
