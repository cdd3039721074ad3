"""Plans: a step, prepared once for its signature and run many times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.collection_pause import collection_paused
from runnel.graph.device_set import LogicalDevice
from runnel.graph.dtypes import float32
from runnel.graph.operation import Operation, Tensor
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.units import Unit, cut
from runnel.passes.placement.node_devices import computes_on_several, devices_of_nodes
from runnel.passes.placement.placement import Placement
from runnel.passes.program.program import Program, is_constant
from runnel.passes.program.prune import prune
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.rewrites.mixed_precision import mixed_precision
from runnel.passes.rewrites.rewrite import optimize, rewrite
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.settled_branches import settle_branches
from runnel.passes.structure.structured import Dynamic, structure_of, touched_by
from runnel.queues.own_memory import is_alone
from runnel.runtime.devices.device_memory import device_error
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.devices.transfer import fetched_observed
from runnel.runtime.dynamic.region import DynamicRegion
from runnel.runtime.interpret.block_calls import require_fits
from runnel.runtime.interpret.interpreter import uninitialized
from runnel.runtime.schedule.schedule import LockstepRun, Schedule, WholeStep
from runnel.runtime.schedule.unit import BlockingUnit, BoundUnit, RegionUnit, SegmentUnit
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.state.cell import Cell, as_numpy
from runnel.runtime.state.options import ALWAYS, SessionOptions
from runnel.runtime.state.step_context import StepContext
from runnel.runtime.state.task_state import TaskState


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared step: value numbers of feeds and fetches, and what computes these from those."""

    feeds: list[int]
    fetches: tuple[int, ...]
    schedule: Schedule
    fetched_cells: dict[int, tuple[Cell, Operation]]
    """Variables that are fetched: they are read when everything else has run."""
    whole: WholeStep | None
    """The same step with less around it, when it is a single segment."""
    in_lockstep: Callable[[], LockstepRun | None]
    """The same step for many sets of feeds at once, where it can run so."""


_LARGE = 1 << 20
"""Bytes of a fetched array from which on it is waited for before it is copied."""


class StepPlan:
    """The segments that compute some fetches from some feeds in one session.

    A plan that is run once is not worth optimizing: common subexpressions and constants are
    looked for when it is run again. (Rewrites that change what a step computes, such as the
    numerically stabilising ones, are made at once.)
    """

    def __init__(
        self,
        fetches: Sequence[Tensor],
        targets: Iterable[Operation],
        feeds: Sequence[Tensor],
        task: TaskState,
        devices: SessionDevices,
        options: SessionOptions,
        done: Collection[Operation] = (),
        known: Mapping[Tensor, bool] | None = None,
    ) -> None:
        """``known`` are values of tensors: branches that they rule out are left out."""
        self._known = known or {}
        self._build = (tuple(fetches), tuple(targets), tuple(feeds), frozenset(done))
        self._task = task
        self._devices = devices
        self._options = options
        self._placement: Placement | None = None
        self._placed = False
        self._runs = 0
        self._to_optimize: Program | None = None
        """The step before it is optimized, for when that is done."""
        # One thread prepares the plan again; others run what there is meanwhile.
        self._prepare_lock = threading.Lock()
        # What is compiled at once is optimized at once: it must not be compiled twice.
        self._optimized = options.jit == ALWAYS or devices.default.device_type != "CPU"
        self._prepare()
        if not self._optimized and any(r.choice.is_heavy for r in self._ready.schedule.runners):
            self._optimized = True
            self._prepare()

    @collection_paused()
    def _prepare(self) -> None:
        feeds, options = self._build[2], self._options
        program = self._to_optimize or self._described()
        self._to_optimize = None
        if options.optimizer and self._optimized:
            program = optimize(program)
        elif options.optimizer and not _has_structure(program):
            # Passes make new nodes, but for loops and conditionals, which they change.
            self._to_optimize = program
        precision = options.precision
        if precision is not None and precision is not float32:
            # Last: passes look for products, not for casts of them.
            program = mixed_precision(program, precision)
        access = StateAccess(program)
        schedule = self._schedule(program, access)
        fetched_cells = {
            number: (self._task.cell(access.variable_of[number]), access.variable_of[number])
            for number in program.fetches
            if number in access.handles
        }
        numbers = [program.feeds[tensor] for tensor in feeds]
        # One assignment, so that a concurrent run sees the old plan or the new one.
        whole = None if fetched_cells else schedule.as_whole(numbers, program.fetches)
        lockstep = cache(partial(schedule.in_lockstep, numbers, program.fetches))
        if fetched_cells:
            lockstep = cache(lambda: None)
        self._ready = _Ready(numbers, program.fetches, schedule, fetched_cells, whole, lockstep)

    def _described(self) -> Program:
        """The step as the graph describes it, with the rewrites that every step gets."""
        program = prune(*self._build)
        if self._known:
            program = settle_branches(program, self._known)
        if not self._placed:
            self._placement = self._devices.place(program)
            self._placed = True
        swaps = self._devices.default.device_type != "CPU"
        placement = self._placement
        spans = None if placement is None else partial(computes_on_several, placement=placement)
        program = explicit_reads(raise_control_flow(program, swaps, self._options.raises, spans))
        return rewrite(program) if self._options.optimizer else program

    def _schedule(self, program: Program, access: StateAccess) -> Schedule:
        """The units of ``program``, bound to the state of the task."""
        device, placement = self._devices.default.device_type, self._placement
        device_of = None if placement is None else devices_of_nodes(program, placement)
        fed = set(program.feeds.values())
        units: list[BoundUnit] = []
        cuts = list(cut(program, access, device, device_of))
        segments = sum(isinstance(unit.content, Segment) for unit in cuts)
        for place, unit in enumerate(cuts):
            is_alone = segments == 1
            is_whole = is_alone and len(cuts) == 1
            units.append(self._bound(unit, place, program, access, fed, is_whole, is_alone))
        made = {value for unit in units for value in unit.outputs}
        wanted = {v for u in units if not isinstance(u, SegmentUnit) for v in u.inputs}
        wanted.update(program.fetches)
        constants = {
            node.outputs[0]: node.attrs["value"]
            for node in program.nodes
            if is_constant(node) and node.outputs[0] in wanted and node.outputs[0] not in made
        }
        host = None if placement is None else placement.devices.host
        return Schedule(units, program, self._task, constants, host)

    def _bound(
        self,
        unit: Unit,
        place: int,
        program: Program,
        access: StateAccess,
        fed: set[int],
        is_whole: bool,
        is_alone: bool,
    ) -> BoundUnit:
        device, content = self._devices.default.device_type, unit.content
        if isinstance(content, Segment):
            # What comes from a queue is not the caller's: it need not be free at the end.
            borrows = not fed.isdisjoint(unit.inputs)
            runner = SegmentRunner(
                *(program, content, access, self._task, device, self._options, borrows),
                is_whole=is_whole,
                is_alone=is_alone,
            )
            return SegmentUnit(unit, place, runner)
        region = structure_of(content)
        if not isinstance(region, Dynamic):
            return BlockingUnit(unit, place, program.infos)
        placed = None
        if self._placement is not None:
            placed = {node: self._placement.device_of(node.op) for node in region.program.nodes}
        touched = touched_by(content)
        bound = DynamicRegion(region, touched, self._task, device, self._options, placed)
        return RegionUnit(unit, place, bound)

    def run(self, feeds: list[Any], context: StepContext) -> list[Any]:
        """The fetched values, as arrays that are the caller's; sleeps while it can only wait."""
        ready = self._next_run()
        if ready.whole is not None:
            return self._to_caller(ready.whole(feeds, context), context)
        self._task.settle(context)
        values = dict(zip(ready.feeds, feeds, strict=True))
        steps = ready.schedule.proceed(values, context)
        try:
            for _ in steps:
                context.sleep()
        finally:
            steps.close()
        return self._to_caller(self._fetched(ready, values, context), context)

    @property
    def lockstep(self) -> LockstepRun | None:
        """Runs it for many sets of feeds at once, which counts as one run; None where it cannot."""
        return self._next_run().in_lockstep()

    def proceed(self, feeds: list[Any], context: StepContext) -> Generator[None, None, list[Any]]:
        """:meth:`run` without a thread that sleeps: yields when the step can only wait.

        What is returned may be the state's own arrays: they are to be read at once.
        """
        ready = self._next_run()
        if ready.whole is not None:
            return ready.whole(feeds, context)
        values = dict(zip(ready.feeds, feeds, strict=True))
        yield from ready.schedule.proceed(values, context)
        return self._fetched(ready, values, context, as_numpy)

    def _next_run(self) -> _Ready:
        self._runs += 1
        if self._runs > 1 and not self._optimized and self._options.optimizer:
            self._optimize()
        return self._ready

    def _fetched(
        self,
        ready: _Ready,
        values: dict[int, Any],
        context: StepContext,
        read: Callable[[Any], Any] = lambda value: np.array(as_numpy(value)),
    ) -> list[Any]:
        if ready.fetched_cells:
            self._read_fetched_variables(ready, values, context, read)
        fetched = [values[number] for number in ready.fetches]
        if any(value is None for value in fetched):
            raise self._without_value(fetched)
        return fetched

    def _to_caller(self, values: list[Any], context: StepContext) -> list[Any]:
        if context.deadline is not None:
            for value, tensor in zip(values, self._build[0], strict=True):
                context.await_ready(value, tensor.op)
        if context.observer is not None:
            for value, tensor in zip(values, self._build[0], strict=True):
                device = self.device_of(tensor.op)
                fetched_observed(value, tensor.name, device, context.observer)
        return own_values(values)

    def _without_value(self, fetched: list[Any]) -> errors.OpError:
        """The error for fetching something in a branch that was not taken."""
        from runnel.control_flow.context import how_to_bring_out

        place = next(i for i, value in enumerate(fetched) if value is None)
        op = self._build[0][place].op
        message = f"{op.name!r} was fetched, but has no value: a branch was not taken. "
        return errors.InvalidArgumentError(None, op, message + how_to_bring_out(op))

    @property
    def runs(self) -> int:
        """How often it was run."""
        return self._runs

    @property
    def schedule(self) -> Schedule:
        """What runs the step."""
        return self._ready.schedule

    def device_of(self, op: Operation) -> LogicalDevice:
        """Where ``op`` runs in this plan."""
        placed = self._placement.placed.get(op) if self._placement is not None else None
        return placed.device if placed is not None else self._devices.default

    def device_error(self, error: Exception) -> errors.OpError:
        """The error for a device that failed while nobody was waiting for it."""
        nodes = prune(*self._build).nodes
        names = dict.fromkeys(self.device_of(node.op).name for node in nodes)
        with self._task.lock:
            lost = [v for runner in self._ready.schedule.runners for v in runner.forget_lost()]
        return device_error(error, nodes, " and ".join(names), lost)

    def add_partition_graphs(self, run_metadata: Any) -> None:
        """Adds a graph for each device that has something to run.

        These show the step as it was described, pruned and placed, before it is rewritten.
        """
        from runnel.passes.placement.part_graph import add_device_graphs

        program = prune(*self._build)
        device_of = {node: self.device_of(node.op) for node in program.nodes}
        add_device_graphs(program, device_of, self._devices.devices.host, run_metadata)

    def _optimize(self) -> None:
        if self._prepare_lock.acquire(blocking=False):
            try:
                if not self._optimized:
                    self._optimized = True
                    self._prepare()
            finally:
                self._prepare_lock.release()

    def _read_fetched_variables(
        self,
        ready: _Ready,
        values: dict[int, Any],
        context: StepContext,
        read: Callable[[Any], Any],
    ) -> None:
        if context.deadline is not None:
            for cell, variable in ready.fetched_cells.values():
                context.await_ready(cell.held, variable)  # not under the lock
        with self._task.lock:
            for number, (cell, variable) in ready.fetched_cells.items():
                if cell.value is None:
                    raise uninitialized(variable, "it is fetched")
                require_fits(cell.value, repr(variable.name), variable)
                values[number] = read(cell.value)


def _has_structure(program: Program) -> bool:
    return any(structure_of(node) is not None for node in program.nodes)


def to_caller(value: Any) -> Any:
    """``value`` as the caller's own: NumPy, writable, shared with no variable or constant.

    What a variable or a constant holds is not writable. A view may share its memory with that,
    or with another fetch.
    """
    if isinstance(value, np.generic):
        return value
    if not isinstance(value, np.ndarray):
        if getattr(value, "shape", None) == ():
            return np.asarray(value)[()]
        if getattr(value, "nbytes", 0) > _LARGE:
            value.block_until_ready()  # a device that failed says so before memory is taken
        value = np.array(value)
    if value.ndim == 0:
        return value[()]
    if is_alone(value) and value.flags.writeable:
        return value
    require_fits(value, "what is fetched")
    return value.copy()


def own_values(values: list[Any]) -> list[Any]:
    """:func:`to_caller` of each; no two share an array."""
    fetched = [to_caller(value) for value in values]
    if len(fetched) > 1 and len(set(map(id, fetched))) < len(fetched):
        return _without_aliases(fetched)
    return fetched


def _without_aliases(fetched: list[Any]) -> list[Any]:
    """``fetched`` with copies where an array occurs again (``x`` and ``tf.identity(x)``)."""
    seen: set[int] = set()
    result = []
    for value in fetched:
        again = id(value) in seen and isinstance(value, np.ndarray)
        result.append(value.copy() if again else value)
        seen.add(id(value))
    return result
