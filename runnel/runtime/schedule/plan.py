"""A step, prepared once for a signature and run many times."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.graph.dtypes import DType, float32
from runnel.graph.operation import Operation, Tensor
from runnel.passes.clusters.cluster import cluster
from runnel.passes.placement.partition import devices_of_nodes, partition, spans_devices
from runnel.passes.placement.placement import Placement
from runnel.passes.program.program import Program
from runnel.passes.program.prune import prune
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.rewrites.mixed_precision import mixed_precision
from runnel.passes.rewrites.rewrite import optimize, rewrite
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.runtime.devices.device_memory import device_error
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.dynamic.dataflow import DYNAMIC_OPS, DataflowPlan
from runnel.runtime.interpret.interpreter import uninitialized
from runnel.runtime.schedule.device_schedule import DeviceSchedule
from runnel.runtime.schedule.straight_line import StraightLine, WholeStep
from runnel.runtime.schedule.waiting_plan import WaitingPlan
from runnel.runtime.segment.tiers import ALWAYS, SegmentRunner
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.state import Cell, StateStore, as_numpy


class Executor(Protocol):
    """What runs a prepared step."""

    @property
    def runners(self) -> Sequence[SegmentRunner]:
        """The segments that may be compiled."""
        ...

    def run(self, values: dict[int, Any], deadline: float | None, observer: Any) -> None:
        """Adds to ``values``, which hold what was fed, at least what is fetched."""
        ...


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared step: value numbers of feeds and fetches, and what computes these from those."""

    feeds: list[int]
    fetches: tuple[int, ...]
    executor: Executor
    fetched_cells: dict[int, tuple[Cell, Operation]]
    """Variables that are fetched: they are read when everything else has run."""
    whole: WholeStep | None
    """The same step with less around it, when it is a single segment."""


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
        if not self._optimized and any(r.is_heavy for r in self._ready.executor.runners):
            self._optimized = True
            self._prepare()

    def _prepare(self) -> None:
        fetches, targets, feeds, done = self._build
        store, streams, devices, _ = self._environment
        program = prune(fetches, targets, feeds, done)
        if not self._placed:
            self._placement = devices.place(program)
            self._placed = True
        executor: Executor
        fetched_cells = {}
        raised = self._without_primitives(program)
        if raised is None:
            if self._precision is not None:
                program = mixed_precision(program, self._precision)
            if self._optimizer:
                program = rewrite(program)
            executor = self._dataflow(program)
            self._optimized = True
        else:
            program = self._rewritten(raised)
            program, executor, access = self._executor(program)
            fetched_cells = {
                number: (store.cell(access.variable_of[number]), access.variable_of[number])
                for number in program.fetches
                if number in access.handles
            }
        numbers = [program.feeds[tensor] for tensor in feeds]
        # One assignment, so that a concurrent run sees the old plan or the new one.
        whole = None
        if isinstance(executor, StraightLine) and not fetched_cells:
            whole = executor.as_whole(numbers, program.fetches)
        self._ready = _Ready(numbers, program.fetches, executor, fetched_cells, whole)

    def _dataflow(self, program: Program) -> DataflowPlan:
        store, streams, devices, mode = self._environment
        placement = self._placement
        device_of = None
        if placement is not None:
            device_of = {node: placement.device_of(node.op) for node in program.nodes}
        kind = devices.default.device_type
        return DataflowPlan(program, store, streams, kind, mode, device_of)

    def _without_primitives(self, program: Program) -> Program | None:
        """``program`` with loops and conditionals raised; None if some must run dynamically."""
        if not any(node.op_def.name in DYNAMIC_OPS for node in program.nodes):
            return program
        raised = None
        if self._raises:
            swaps = self._environment[2].default.device_type != "CPU"
            raised = raise_control_flow(program, swaps)
        if raised is not None and self._placement and spans_devices(raised, self._placement):
            return None
        return raised

    def _rewritten(self, program: Program) -> Program:
        program = explicit_reads(program)
        if self._precision is not None:
            program = mixed_precision(program, self._precision)
        if self._optimizer:
            program = rewrite(program)
            if self._optimized:
                program = optimize(program)
        return program

    def _executor(self, program: Program) -> tuple[Program, Executor, StateAccess]:
        """The simplest executor that can run ``program``, which it may partition first."""
        store, streams, devices, mode = self._environment
        device, placement = devices.default.device_type, self._placement
        if any(node.op_def.blocking for node in program.nodes):
            access = StateAccess(program)
            device_of = None if placement is None else devices_of_nodes(program, placement)
            waiting = WaitingPlan(program, access, store, device, mode, streams, device_of)
            return program, waiting, access
        parted = None if placement is None else partition(program, placement)
        if parted is not None:
            program = parted.program
        access = StateAccess(program)
        segments = cluster(program, access, device, None if parted is None else parted.device_of)
        runners = [
            SegmentRunner(program, segment, access, store, device, mode, streams)
            for segment in segments
        ]
        if parted is None:
            return program, StraightLine(runners), access
        return program, DeviceSchedule(parted, access, runners), access

    def run(
        self, feeds: list[Any], deadline: float | None = None, observer: Any = None
    ) -> list[Any]:
        """The fetched values, as arrays that belong to the caller."""
        self._runs += 1
        if self._runs > 1 and not self._optimized and self._optimizer:
            self._optimize()
        ready = self._ready
        if ready.whole is not None:
            return _to_caller(ready.whole.run(feeds, deadline, observer))
        values = dict(zip(ready.feeds, feeds, strict=True))
        ready.executor.run(values, deadline, observer)
        if ready.fetched_cells:
            self._read_fetched_variables(ready, values)
        return _to_caller([values[number] for number in ready.fetches])

    @property
    def executor(self) -> Executor:
        """What runs the step."""
        return self._ready.executor

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
            lost = [v for runner in self._ready.executor.runners for v in runner.forget_lost()]
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
        if getattr(value, "shape", None) == ():
            return np.asarray(value)[()]
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
