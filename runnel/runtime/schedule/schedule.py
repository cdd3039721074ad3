"""Runs a prepared step: starts units when their inputs arrive.

One thread starts the units in an order that agrees with every edge and with the order of effects on
state. It does not wait for a compiled segment or for a transfer to another device, so devices work
at the same time and transfers overlap with computation. But whatever a unit waits for was started
before it. So no placement can deadlock, and devices need no locks between them. A unit's value for
another device is sent as soon as it exists.

An operation that has to wait for another step holds back only the units that need it. When only
waiting is left, the step confirms what it has started and sleeps.

A compiled segment says at its end whether its checks held. The step looks at that before anything
that depends on it changes state or has an effect outside, and for the rest at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.passes.program.program import Program
from runnel.passes.program.variable_reads import value_names
from runnel.queues.waiter import WAITING
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.interpret.interpreter import missing_variable
from runnel.runtime.schedule.unit import BlockingUnit, BoundUnit, Pending, SegmentUnit
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.state.cell import as_numpy
from runnel.runtime.state.step_context import StepContext
from runnel.runtime.state.task_state import TaskState

LockstepRun = Callable[[list[Any], int, StepContext], list[Any]]
"""A step for so many rows: feeds and fetches have rows, or one value for all of them."""
WholeStep = Callable[[list[Any], StepContext], list[Any]]
"""The fetched values for the fed ones, both by position."""


class Schedule:
    """The units of a step, in the order in which they are started when nothing blocks."""

    def __init__(
        self,
        units: Sequence[BoundUnit],
        program: Program,
        task: TaskState,
        constants: dict[int, Any],
        host: LogicalDevice | None,
    ) -> None:
        """``constants`` are those that are fetched, or that a blocking operation takes.

        ``host`` is where fed values come from, in a step over several devices.
        """
        self.units = units
        self.runners: list[SegmentRunner] = [r for unit in units for r in unit.runners]
        """The segments that may be compiled."""
        self._task = task
        self._constants = constants
        self._fed: list[Transfer] = []
        """Transfers of fed values."""
        if len(units) > 1:
            self._find_awaited()
        if host is not None:
            self._add_transfers(program, host)
        self._certain_loads = self._find_certain_loads()

    def _find_awaited(self) -> None:
        before: list[set[int]] = []
        for unit in self.units:
            found = set(unit.needs).union(*(before[need] for need in unit.needs))
            before.append(found)
            if unit.replaces_state:
                unit.awaited = tuple(range(unit.place))  # a failed step changes nothing
            elif unit.has_effects:
                unit.awaited = tuple(sorted(found))

    def _add_transfers(self, program: Program, host: LogicalDevice) -> None:
        """Has each unit send what units of other devices need of it, once to each device."""
        makers: dict[int, list[BoundUnit]] = {}
        takers: dict[tuple[int, LogicalDevice], list[BoundUnit]] = {}
        for unit in self.units:
            for value in unit.outputs:
                makers.setdefault(value, []).append(unit)
            for value in unit.inputs:
                if unit.device is not None:
                    takers.setdefault((value, unit.device), []).append(unit)
        received: dict[tuple[int, LogicalDevice], int] = {}
        names = value_names(program)
        for (value, device), units in takers.items():
            sources = [unit.device for unit in makers.get(value, ())]
            if value in self._constants or device in (sources or [host]):
                for unit in makers.get(value, ()):
                    if isinstance(unit, BlockingUnit):
                        unit.kept.append(value)
                continue  # it is there
            info = program.infos[value]
            number = received[value, device] = program.new_value(info.dtype, info.dims)
            as_array = any(unit.takes_array(value) for unit in units)
            sender = next((source for source in sources if source is not None), host)
            transfer = Transfer(value, number, device, names[value], sender, not as_array)
            if value not in makers:
                self._fed.append(transfer)
            for unit in makers.get(value, ()):
                unit.transfers.append(transfer)
        for unit in self.units:
            if unit.device is not None:
                unit.inputs = tuple([received.get((v, unit.device), v) for v in unit.inputs])

    def _find_certain_loads(self) -> list[Any]:
        """Variables that must have a value before the step begins."""
        written = {cell for runner in self.runners for cell in runner.state.stored}
        return [
            (cell, variable, node)
            for runner in self.runners
            for cell, _, variable, node in runner.state.loads
            if node is not None and (cell not in written or cell in runner.state.stored)
        ]

    def as_whole(self, feeds: Sequence[int], fetches: Sequence[int]) -> WholeStep | None:
        """The step as one segment, which must use fed values alone and make all that is fetched."""
        if len(self.units) != 1 or self._fed or self._constants:
            return None
        [unit] = self.units
        if not isinstance(unit, SegmentUnit):
            return None
        if not set(unit.inputs).issubset(feeds) or not set(fetches).issubset(unit.outputs):
            return None
        run = unit.runner.run_whole
        taken = [feeds.index(value) for value in unit.inputs]
        given = [unit.outputs.index(value) for value in fetches]

        def whole(fed: list[Any], context: StepContext) -> list[Any]:
            results = run([fed[i] for i in taken], context, bool(given))
            return [results[i] for i in given]

        return whole

    def in_lockstep(self, feeds: Sequence[int], fetches: Sequence[int]) -> LockstepRun | None:
        """The step for many sets of feeds at once; None where some of it cannot run so."""
        segments = []
        for unit in self.units:
            found = unit.runner.in_lockstep() if isinstance(unit, SegmentUnit) else None
            if found is None or unit.transfers:
                return None
            segments.append((unit.inputs, unit.outputs, found))
        constants, task = self._constants, self._task

        def run(fed: list[Any], count: int, context: StepContext) -> list[Any]:
            values = {**constants, **dict(zip(feeds, fed, strict=True))}
            try:
                for inputs, outputs, segment in segments:
                    found = segment.run([values[value] for value in inputs], count, context)
                    values.update(zip(outputs, found, strict=True))
            except BaseException:
                task.take_back(context.drawn)
                raise
            return [values[value] for value in fetches]

        return run

    # Running --------------------------------------------------------------------------------

    def proceed(self, values: dict[int, Any], context: StepContext) -> Generator[None, None, None]:
        """Adds to ``values``, which hold what was fed, everything that the units give.

        Yields whenever only waiting is left, to be taken up again when something has arrived at
        ``context`` or the step has to stop; on whichever thread. What was sent last has yet to
        leave (``Rendezvous.flush``) when it returns.
        """
        if self._constants:
            values.update(self._constants)
        pending: Pending = {}
        unfinished: set[int] = set()
        try:
            if self._fed:
                self._send_fed(values, context, pending)
            for unit in self.units:
                blocked = bool(unfinished) and not unfinished.isdisjoint(unit.needs)
                if blocked or not self._start(unit, values, context, pending):
                    unfinished.add(unit.place)
            if unfinished:
                yield from self._finish(unfinished, values, context, pending)
            if pending:
                for waiting in pending.values():
                    waiting.finish()
        except BaseException:
            if pending:
                context.cancel("it failed elsewhere")
            for waiting in pending.values():
                waiting.await_end()
            self._task.take_back(context.drawn)
            raise
        finally:
            if context.outstanding:
                context.withdraw()

    def _send_fed(self, values: dict[int, Any], context: StepContext, pending: Pending) -> None:
        """Starts the transfers of fed values; until they end, the caller's arrays are in use."""
        for transfer in self._fed:
            value = values[transfer.source]
            moved = values[transfer.received] = transfer.start(value, context.observer)
            if moved is not value:
                pending[-1 - len(pending)] = Unconfirmed(None, arrays=[moved])

    def _start(
        self,
        unit: BoundUnit,
        values: dict[int, Any],
        context: StepContext,
        pending: Pending,
    ) -> bool:
        """Starts a unit; False if it waits."""
        if context.rendezvous is not None and not isinstance(unit, BlockingUnit):
            context.rendezvous.flush()  # what was sent need not wait for what now computes
        if pending:
            for place in unit.awaited:
                if place in pending:
                    pending[place].confirm()
        results = unit.start([values[number] for number in unit.inputs], context, pending)
        if results is WAITING:
            return False
        for number, result in zip(unit.outputs, results):
            values[number] = result
        if unit.transfers or unit.kept:
            self._send(unit, values, context)
        return True

    @staticmethod
    def _send(unit: BoundUnit, values: dict[int, Any], context: StepContext) -> None:
        for transfer in unit.transfers:
            # Units that wait for different things may each have read the same variable.
            if transfer.received not in values:
                value = values[transfer.source]
                values[transfer.received] = transfer.start(value, context.observer)
        for value in unit.kept:
            values[value] = as_numpy(values[value])

    def _finish(
        self,
        unfinished: set[int],
        values: dict[int, Any],
        context: StepContext,
        pending: Pending,
    ) -> Iterator[None]:
        """Runs the rest of a step, some units of which wait."""
        for cell, variable, node in self._certain_loads:
            if cell.held is None:  # a step that is about to wait says so at once
                raise missing_variable(variable, node)
        missing: dict[int, int] = {}
        users: dict[int, list[int]] = {}
        for place in unfinished:
            for need in self.units[place].needs:
                if need in unfinished:
                    missing[place] = missing.get(place, 0) + 1
                    users.setdefault(need, []).append(place)
        while unfinished:
            for waiting in pending.values():
                waiting.confirm()
            while not context.has_arrived():
                if context.rendezvous is not None:
                    context.rendezvous.flush()
                yield
            waiter = context.next()
            unit = waiter.where[0]
            results = unit.resume(waiter, context)
            if results is WAITING:
                continue
            values.update(zip(unit.outputs, results))
            self._send(unit, values, context)
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
                    if self._start(self.units[place], values, context, pending):
                        finished.append(place)
