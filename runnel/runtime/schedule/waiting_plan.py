"""Runs steps in which operations may block: an operation that waits keeps back only what needs it.

The units of the step (``passes.clusters.stretches``) run in their order for as long as nothing
blocks. From then on they run when what they need is there; when only waiting is left, the thread
sleeps.

Where units are on several devices, what one makes for another is sent
(``passes.placement.partition``) as soon as it exists: when a segment has been started, or an
operation has got its result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.graph.registry import INTERPRETED
from runnel.passes.clusters.stretches import Unit, cut, is_constant
from runnel.passes.placement.partition import NodeDevices, partition_nodes
from runnel.passes.program.kernel_call import bind_blocking, select
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.queues.waiter import WAITING
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.interpreter import as_op_error, missing_variable, require_time
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.segment.unconfirmed import Unconfirmed
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.state import Cell, StateStore
from runnel.runtime.state.waiting import NodeWaiter, StepWaits

Start = Callable[..., Any]


class BoundUnit:
    """A unit, bound to a kernel or to the state of a session."""

    __slots__ = (
        *("node", "start", "runner", "inputs", "outputs", "needs", "place", "infos"),
        *("device", "transfers"),
    )

    def __init__(self, unit: Unit, place: int, program: Program) -> None:
        self.node = unit.node
        self.place = place
        self.device: LogicalDevice | None = None
        """Where it runs, in a step over several devices."""
        self.inputs = unit.inputs
        """Where its values are found: those from another device under the number that they have
        been received as."""
        self.outputs = unit.outputs
        self.needs = unit.needs
        self.start: Start | None = None
        self.runner: SegmentRunner | None = None
        self.infos = [program.infos[value] for value in unit.outputs]
        self.transfers: list[Transfer] = []
        """What is sent when it has run."""

    def takes_array(self, value: int) -> bool:
        """True when a compiled version takes ``value`` as an array, not to be built for it."""
        if self.runner is None:
            return False
        segment = self.runner.segment
        return segment.compilable and value in segment.inputs and value not in segment.specialized


class WaitingPlan:
    """A step with blocking operations, prepared once for a signature and run many times."""

    def __init__(
        self,
        program: Program,
        access: StateAccess,
        store: StateStore,
        device: str,
        mode: str,
        streams: RandomStreams,
        device_of: NodeDevices | None = None,
    ) -> None:
        self._session = store.waiting
        self._constants = {
            node.outputs[0]: node.attrs["value"] for node in program.nodes if is_constant(node)
        }
        fed = set(program.feeds.values())
        self._units: list[BoundUnit] = []
        self.runners: list[SegmentRunner] = []
        for place, unit in enumerate(cut(program, access, device, device_of)):
            bound = BoundUnit(unit, place, program)
            if unit.node is not None:
                bound.start = bind_blocking(select(unit.node, "CPU", INTERPRETED), unit.node)
                bound.device = None if device_of is None else device_of[unit.node]
            else:
                assert unit.segment is not None
                bound.device = unit.segment.device
                # What comes from a queue is not the caller's: it need not be free at the end.
                borrows = not fed.isdisjoint(unit.inputs)
                bound.runner = SegmentRunner(
                    program, unit.segment, access, store, device, mode, streams, borrows
                )
                self.runners.append(bound.runner)
            self._units.append(bound)
        self._loads = self._certain_loads()
        self._fed: list[Transfer] = []
        """Transfers of fed values."""
        if device_of is not None:
            self._add_transfers(program, device_of)

    def _add_transfers(self, program: Program, device_of: NodeDevices) -> None:
        """Has each unit send what units of other devices need of it."""
        makers: dict[int, list[BoundUnit]] = {}
        takers: dict[tuple[int, LogicalDevice | None], list[BoundUnit]] = {}
        for unit in self._units:
            for value in unit.outputs:
                makers.setdefault(value, []).append(unit)
            for value in unit.inputs:
                takers.setdefault((value, unit.device), []).append(unit)
        partition = partition_nodes(program, device_of)
        received: dict[tuple[int, LogicalDevice | None], int] = {}
        for send, recv in partition.recv_of.items():
            value, device = send.inputs[0], partition.device_of[recv]
            if (value, device) not in takers:
                continue  # a constant that had waited for something, now in every unit that uses it
            as_array = any(unit.takes_array(value) for unit in takers[value, device])
            transfer = Transfer.of(partition, send, by_value=not as_array)
            received[value, device] = transfer.received
            if value in makers:
                for unit in makers[value]:
                    unit.transfers.append(transfer)
            else:
                self._fed.append(transfer)
        for unit in self._units:
            unit.inputs = tuple([received.get((v, unit.device), v) for v in unit.inputs])

    def _certain_loads(self) -> list[tuple[Cell, Operation, Node]]:
        """Variables that must have a value before the step begins."""
        written = {cell for runner in self.runners for cell in runner.state.stored}
        return [
            (cell, variable, node)
            for runner in self.runners
            for cell, _, variable, node in runner.state.loads
            if node is not None and (cell not in written or cell in runner.state.stored)
        ]

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Adds to ``values``, which are those fed, everything that the units give."""
        if self._constants:
            values.update(self._constants)
        step = StepWaits(self._session)
        unfinished: set[int] = set()
        lent: Unconfirmed | None = None
        try:
            if self._fed:
                lent = self._send_fed(values)
            for unit in self._units:
                blocked = bool(unfinished) and not unfinished.isdisjoint(unit.needs)
                if blocked or not self._run_unit(unit, values, step, deadline, observer):
                    unfinished.add(unit.place)
            if unfinished:
                self._finish(unfinished, values, step, deadline, observer)
            if lent is not None:
                lent.finish()
        except BaseException:
            if lent is not None:
                lent.settle()
            raise
        finally:
            if step.outstanding:
                step.end()

    def _send_fed(self, values: dict[int, Any]) -> Unconfirmed:
        """Starts the transfers of fed values; until they end, the caller's arrays are in use."""
        moved = []
        for transfer in self._fed:
            value = values[transfer.source]
            received = values[transfer.received] = transfer.start(value)
            if received is not value:
                moved.append(received)
        return Unconfirmed(None, moved)

    def _run_unit(
        self,
        unit: BoundUnit,
        values: dict[int, Any],
        step: StepWaits,
        deadline: float | None,
        observer: Any,
    ) -> bool:
        """Runs a unit; False if it waits."""
        args = [values[number] for number in unit.inputs]
        if unit.runner is not None:
            results = unit.runner.run(args, deadline, observer)
        else:
            node = unit.node
            assert node is not None and unit.start is not None
            if deadline is not None:
                require_time(deadline, node)
            start = time.perf_counter_ns() if observer is not None else 0
            waiter = NodeWaiter(step, node, (unit, start))
            try:
                results = unit.start(waiter, *args)
            except Exception as error:
                raise as_op_error(error, node, args) from error
            if results is WAITING:
                step.outstanding[waiter] = None
                return False
            self._note(unit, start, results, observer)
        for number, result in zip(unit.outputs, results):
            values[number] = result
        if unit.transfers:
            self._send(unit, values)
        return True

    @staticmethod
    def _send(unit: BoundUnit, values: dict[int, Any]) -> None:
        for transfer in unit.transfers:
            # Units that wait for different things may each have read the same variable.
            if transfer.received not in values:
                values[transfer.received] = transfer.start(values[transfer.source])

    @staticmethod
    def _note(unit: BoundUnit, start: int, results: Any, observer: Any) -> None:
        assert unit.node is not None
        if verification.enabled:
            verification.verify_all(unit.node, unit.infos, results)
        if observer is not None:
            observer.operation(unit.node, start, time.perf_counter_ns(), results)

    def _finish(
        self,
        unfinished: set[int],
        values: dict[int, Any],
        step: StepWaits,
        deadline: float | None,
        observer: Any,
    ) -> None:
        """Runs the rest of a step, some operations of which wait."""
        self._require_variables()
        units = self._units
        missing: dict[int, int] = {}
        users: dict[int, list[int]] = {}
        for place in unfinished:
            for need in units[place].needs:
                if need in unfinished:
                    missing[place] = missing.get(place, 0) + 1
                    users.setdefault(need, []).append(place)
        while unfinished:
            waiter = step.next(deadline)
            unit, start = waiter.where
            if waiter.error is not None:
                raise as_op_error(waiter.error, waiter.node, ()) from waiter.error
            assert waiter.made is not None
            results = waiter.made()
            self._note(unit, start, results, observer)
            for number, result in zip(unit.outputs, results):
                values[number] = result
            if unit.transfers:
                self._send(unit, values)
            finished = [unit.place]
            ready: list[int] = []
            while finished:
                place = finished.pop()
                unfinished.discard(place)
                for user in users.get(place, ()):
                    missing[user] -= 1
                    if missing[user] == 0:
                        heappush(ready, user)
                while ready and not finished:
                    place = heappop(ready)
                    if self._run_unit(units[place], values, step, deadline, observer):
                        finished.append(place)

    def _require_variables(self) -> None:
        """A step that is about to wait says at once that a variable has not been initialised."""
        for cell, variable, node in self._loads:
            if cell.value is None:
                raise missing_variable(variable, node)
