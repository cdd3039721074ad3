"""Running a partitioned step: one order of segments over several devices.

A single thread starts the segments in an order that agrees with every edge and with the order of
effects on state. Starting a compiled segment does not wait for it, nor does a transfer, so devices
work at the same time, and transfers overlap with computation; but whatever something waits for has
been started before it. So no partition can deadlock, and no locks are needed between devices.

A compiled segment says at its end whether its checks held. That is looked at before anything that
depends on it changes state or has an effect outside, and for the rest at the end of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.operation import Operation
from runnel.passes.clusters.cluster import Segment
from runnel.passes.placement.partition import Partition, is_constant
from runnel.passes.program.program import Node
from runnel.passes.program.state_access import StateAccess
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.segment.unconfirmed import Unconfirmed


class _Step:
    """A segment, what it sends when it has been started, and what must have been confirmed."""

    __slots__ = ("runner", "inputs", "outputs", "transfers", "awaited")

    def __init__(self, runner: SegmentRunner) -> None:
        self.runner = runner
        self.inputs = runner.segment.inputs
        self.outputs = runner.segment.outputs
        self.transfers: list[Transfer] = []
        self.awaited: tuple[int, ...] = ()
        """Steps whose checks must have held before this one changes anything."""


class DeviceSchedule:
    """The segments of a partitioned step in the order in which they are started."""

    def __init__(
        self, partition: Partition, access: StateAccess, runners: Sequence[SegmentRunner]
    ) -> None:
        self.runners = runners
        self.steps = [_Step(runner) for runner in runners]
        self.fed: list[Transfer] = []
        """Transfers of fed values."""
        segments = [runner.segment for runner in runners]
        self._add_transfers(partition, segments)
        self._find_awaited(partition, access, segments)

    def _add_transfers(self, partition: Partition, segments: list[Segment]) -> None:
        made_by = {v: number for number, s in enumerate(segments) for v in s.outputs}
        # A receiver may want the value itself, not an array: to compile for it, or on the host.
        arrays = {v for s in segments if s.compilable for v in s.inputs if v not in s.specialized}
        for send, recv in partition.recv_of.items():
            transfer = Transfer.of(partition, send, by_value=recv.outputs[0] not in arrays)
            if transfer.source in made_by:
                self.steps[made_by[transfer.source]].transfers.append(transfer)
            else:
                self.fed.append(transfer)

    def _find_awaited(
        self, partition: Partition, access: StateAccess, segments: list[Segment]
    ) -> None:
        step_of: dict[Node, int] = {}
        made_by: dict[int, int] = {}
        for number, segment in enumerate(segments):
            for node in segment.nodes:
                if not is_constant(node):  # a constant is in every segment that uses it
                    step_of[node] = number
                    made_by.update(dict.fromkeys(node.outputs, number))
        for send, recv in partition.recv_of.items():
            if send.inputs[0] in made_by:
                made_by[recv.outputs[0]] = made_by[send.inputs[0]]
        ancestors: list[set[int]] = []
        touched: dict[Operation, set[int]] = {}
        for number, (segment, step) in enumerate(zip(segments, self.steps, strict=True)):
            direct: set[int] = set()
            for node in segment.nodes:
                direct |= {made_by[v] for v in node.inputs if v in made_by}
                direct |= {step_of[c] for c in node.control if c in step_of}
                for variable in (*access.reads(node), *access.writes(node)):
                    users = touched.setdefault(variable, set())
                    direct |= users
                    users.add(number)
            direct.discard(number)
            found = direct.union(*(ancestors[n] for n in direct))
            ancestors.append(found)
            if step.runner.has_effects:
                step.awaited = tuple(sorted(found))

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Computes everything into ``values``, which hold what was fed."""
        unconfirmed: dict[int, Unconfirmed] = {}
        try:
            for transfer in self.fed:
                moved = values[transfer.received] = transfer.start(values[transfer.source])
                if moved is not values[transfer.source]:
                    # The caller's array is in use until it has been copied.
                    unconfirmed[-1 - len(unconfirmed)] = Unconfirmed(None, arrays=[moved])
            for number, step in enumerate(self.steps):
                for awaited in step.awaited:
                    if awaited in unconfirmed:
                        unconfirmed[awaited].confirm()
                inputs = [values[value] for value in step.inputs]
                results, waiting = step.runner.start(inputs, deadline, observer)
                if waiting is not None:
                    unconfirmed[number] = waiting
                for value, result in zip(step.outputs, results, strict=True):
                    values[value] = result
                for transfer in step.transfers:
                    values[transfer.received] = transfer.start(values[transfer.source])
            for waiting in unconfirmed.values():
                waiting.finish()
        except BaseException:
            for waiting in unconfirmed.values():
                waiting.settle()
            raise
