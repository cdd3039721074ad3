"""A step, prepared once for a signature and run many times."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.graph.dtypes import DType, float32
from runnel.graph.operation import Operation, Tensor
from runnel.passes.cluster import cluster
from runnel.passes.mixed_precision import mixed_precision
from runnel.passes.partition import devices_of_nodes, partition, spans_devices
from runnel.passes.placement import Placement
from runnel.passes.program import Program
from runnel.passes.prune import prune
from runnel.passes.raise_control_flow import raise_control_flow
from runnel.passes.rewrite import optimize, rewrite
from runnel.passes.state_access import StateAccess
from runnel.passes.variable_reads import explicit_reads
from runnel.runtime.dataflow import DYNAMIC_OPS, DataflowPlan
from runnel.runtime.device_memory import device_error, forget_lost
from runnel.runtime.device_schedule import DeviceSchedule
from runnel.runtime.interpreter import uninitialized
from runnel.runtime.random_streams import RandomStreams
from runnel.runtime.session_devices import SessionDevices
from runnel.runtime.state import Cell, StateStore, as_numpy
from runnel.runtime.tiers import ALWAYS, SegmentRunner
from runnel.runtime.waiting_plan import WaitingPlan


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared step: value numbers of feeds and fetches, and the segments between."""

    feeds: list[int]
    fetches: tuple[int, ...]
    steps: list[tuple[SegmentRunner, tuple[int, ...], tuple[int, ...]]]
    fetched_cells: dict[int, tuple[Cell, Operation]]
    dynamic: DataflowPlan | None = None
    """What runs a step with dynamic control flow, instead of ``steps``."""
    waiting: WaitingPlan | None = None
    """What runs a step with blocking operations, instead of ``steps``."""
    schedule: DeviceSchedule | None = None
    """What runs a step over several devices, instead of ``steps``."""

    def runners(self) -> list[SegmentRunner]:
        if self.waiting is not None:
            return self.waiting.runners
        if self.schedule is not None:
            return [step.runner for step in self.schedule.steps]
        return [runner for runner, *_ in self.steps]


_LARGE = 1 << 20


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
        store: StateStore,
        streams: RandomStreams,
        devices: SessionDevices,
        mode: str,
        optimizer: bool,
        done: Collection[Operation] = (),
        raises: bool = True,
        precision: DType | None = None,
    ) -> None:
        self._build = (tuple(fetches), tuple(targets), tuple(feeds), frozenset(done))
        self._environment = (store, streams, devices, mode)
        self._placement: Placement | None = None
        self._placed = False
        self._optimizer = optimizer
        self._raises = raises
        """Whether loops and conditionals are raised, or all left to the event-driven executor."""
        self._precision = None if precision is float32 else precision
        self._runs = 0
        # One thread prepares the plan again; others run what there is meanwhile.
        self._prepare_lock = threading.Lock()
        # What is compiled at once is optimized at once: it must not be compiled twice.
        self._optimized = mode == ALWAYS or devices.default.device_type != "CPU"
        self._prepare()
        if not self._optimized and any(runner.is_heavy for runner in self._ready.runners()):
            self._optimized = True
            self._prepare()

    def _prepare(self) -> None:
        fetches, targets, feeds, done = self._build
        store, streams, devices, mode = self._environment
        device = devices.default.device_type
        program = prune(fetches, targets, feeds, done)
        if not self._placed:
            self._placement = devices.place(program)
            self._placed = True
        placement = self._placement
        raised: Program | None = program
        if any(node.op_def.name in DYNAMIC_OPS for node in program.nodes):
            raised = raise_control_flow(program) if self._raises else None
            if raised is not None and placement and spans_devices(raised, placement):
                raised = None
        if raised is None:
            numbers = [program.feeds[tensor] for tensor in feeds]
            dynamic = DataflowPlan(program, store, streams, device)
            self._optimized = True
            self._ready = _Ready(numbers, program.fetches, [], {}, dynamic)
            return
        program = explicit_reads(raised)
        if self._precision is not None:
            program = mixed_precision(program, self._precision)
        if self._optimizer:
            program = rewrite(program)
            if self._optimized:
                program = optimize(program)
        blocks = any(node.op_def.blocking for node in program.nodes)
        parted = None if placement is None or blocks else partition(program, placement)
        if parted is not None:
            program = parted.program
        access = StateAccess(program)
        waiting: WaitingPlan | None = None
        schedule: DeviceSchedule | None = None
        runners: list[SegmentRunner] = []
        if blocks:
            # JAX brings what comes from another device when it is used.
            device_of = devices_of_nodes(program, placement) if placement is not None else None
            waiting = WaitingPlan(program, access, store, device, mode, streams, device_of)
        else:
            device_of = None if parted is None else parted.device_of
            runners = [
                SegmentRunner(program, segment, access, store, device, mode, streams)
                for segment in cluster(program, access, device, device_of)
            ]
            if parted is not None:
                schedule, runners = DeviceSchedule(parted, access, runners), []
        # A fetched variable is read when everything else has run.
        fetched_cells = {
            number: (store.cell(access.variable_of[number]), access.variable_of[number])
            for number in program.fetches
            if number in access.handles
        }
        # One assignment, so that a concurrent run sees the old plan or the new one.
        self._ready = _Ready(
            [program.feeds[tensor] for tensor in feeds],
            program.fetches,
            [(runner, runner.segment.inputs, runner.segment.outputs) for runner in runners],
            fetched_cells,
            waiting=waiting,
            schedule=schedule,
        )

    def run(
        self, feeds: list[Any], deadline: float | None = None, observer: Any = None
    ) -> list[Any]:
        """The fetched values, as arrays that belong to the caller."""
        self._runs += 1
        if self._runs > 1 and not self._optimized and self._optimizer:
            self._optimize()
        ready = self._ready
        values = dict(zip(ready.feeds, feeds, strict=True))
        if ready.dynamic is not None:
            return _to_caller(ready.dynamic.run(values, deadline, observer))
        if ready.waiting is not None:
            ready.waiting.run(values, deadline, observer)
        if ready.schedule is not None:
            ready.schedule.run(values, deadline, observer)
        for runner, inputs, outputs in ready.steps:
            results = runner.run([values[number] for number in inputs], deadline, observer)
            for number, value in zip(outputs, results, strict=True):
                values[number] = value
        if ready.fetched_cells:
            self._read_fetched_variables(ready, values)
        return _to_caller([values[number] for number in ready.fetches])

    @property
    def feeds(self) -> tuple[Tensor, ...]:
        """The tensors whose values :meth:`run` takes, in their order."""
        return self._build[2]

    def device_of(self, op: Operation) -> LogicalDevice:
        """Where ``op`` runs in this plan."""
        placed = self._placement.placed.get(op) if self._placement is not None else None
        return placed.device if placed is not None else self._environment[2].default

    def device_error(self, error: Exception) -> errors.OpError:
        """The error for a device that failed while nobody was waiting for it."""
        nodes = prune(*self._build).nodes
        names = dict.fromkeys(self.device_of(node.op).name for node in nodes)
        with self._environment[0].lock:
            cells = [pair for runner in self._ready.runners() for pair in runner.cells()]
            lost = forget_lost(cells)
        return device_error(error, nodes, " and ".join(names), lost)

    def operations(self) -> list[Operation]:
        """The operations that this plan runs, in their order."""
        return [node.op for node in prune(*self._build).nodes]

    def _optimize(self) -> None:
        if self._prepare_lock.acquire(blocking=False):
            try:
                if not self._optimized:
                    self._optimized = True
                    self._prepare()
            finally:
                self._prepare_lock.release()

    def _read_fetched_variables(self, ready: _Ready, values: dict[int, Any]) -> None:
        with self._environment[0].lock:
            for number, (cell, variable) in ready.fetched_cells.items():
                if cell.value is None:
                    raise uninitialized(variable, "it is fetched")
                values[number] = np.array(as_numpy(cell.value))


def to_caller(value: Any) -> Any:
    """``value`` as the caller's own: NumPy, writable, shared with no variable or constant.

    What a variable or a constant holds is not writable. A view may share its memory with that,
    or with another fetch.
    """
    if isinstance(value, np.generic):
        return value
    if not isinstance(value, np.ndarray):
        if getattr(value, "nbytes", 0) > _LARGE:
            value.block_until_ready()  # a device that failed says so before memory is taken
        value = np.array(value)
    if value.ndim == 0:
        return value[()]
    return value if value.base is None and value.flags.writeable else value.copy()


def _to_caller(values: list[Any]) -> list[Any]:
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
