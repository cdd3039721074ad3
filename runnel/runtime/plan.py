"""A step, prepared once for a signature and run many times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph.operation import Operation, Tensor
from runnel.passes.cluster import cluster
from runnel.passes.prune import prune
from runnel.passes.rewrite import optimize, rewrite
from runnel.passes.state_access import StateAccess
from runnel.passes.variable_reads import explicit_reads
from runnel.runtime.interpreter import uninitialized
from runnel.runtime.random_streams import RandomStreams
from runnel.runtime.state import Cell, StateStore, as_numpy
from runnel.runtime.tiers import ALWAYS, SegmentRunner


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared step: value numbers of feeds and fetches, and the segments between."""

    feeds: list[int]
    fetches: tuple[int, ...]
    steps: list[tuple[SegmentRunner, tuple[int, ...], tuple[int, ...]]]
    fetched_cells: dict[int, tuple[Cell, Operation]]


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
        device: str,
        mode: str,
        optimizer: bool,
        done: Collection[Operation] = (),
    ) -> None:
        self._build = (tuple(fetches), tuple(targets), tuple(feeds), frozenset(done))
        self._environment = (store, streams, device, mode)
        self._optimizer = optimizer
        self._runs = 0
        # What is compiled at once is optimized at once: it must not be compiled twice.
        self._optimized = mode == ALWAYS or device != "CPU"
        self._prepare()
        if not self._optimized and any(runner.is_heavy for runner, *_ in self._ready.steps):
            self._optimized = True
            self._prepare()

    def _prepare(self) -> None:
        fetches, targets, feeds, done = self._build
        store, streams, device, mode = self._environment
        program = explicit_reads(prune(fetches, targets, feeds, done))
        if self._optimizer:
            program = rewrite(program)
            if self._optimized:
                program = optimize(program)
        access = StateAccess(program)
        segments = cluster(program, access, device)
        runners = [
            SegmentRunner(program, segment, access, store, device, mode, streams)
            for segment in segments
        ]
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
        )

    def run(
        self, feeds: list[Any], deadline: float | None = None, observe: Any = None
    ) -> list[Any]:
        """The fetched values, as arrays that belong to the caller."""
        self._runs += 1
        if self._runs == 2 and not self._optimized and self._optimizer:
            self._optimized = True
            self._prepare()
        ready = self._ready
        values = dict(zip(ready.feeds, feeds, strict=True))
        for runner, inputs, outputs in ready.steps:
            results = runner.run([values[number] for number in inputs], deadline, observe)
            for number, value in zip(outputs, results, strict=True):
                values[number] = value
        if ready.fetched_cells:
            self._read_fetched_variables(ready, values)
        return [to_caller(values[number]) for number in ready.fetches]

    def _read_fetched_variables(self, ready: _Ready, values: dict[int, Any]) -> None:
        with self._environment[0].lock:
            for number, (cell, variable) in ready.fetched_cells.items():
                if cell.value is None:
                    raise uninitialized(variable, "it is fetched")
                values[number] = np.array(as_numpy(cell.value))


def to_caller(value: Any) -> Any:
    """``value`` as the caller's own: NumPy, writable, shared with no variable or constant."""
    if isinstance(value, np.ndarray):
        array = value if value.flags.writeable else value.copy()
    elif isinstance(value, np.generic):
        return value
    else:
        array = np.array(value)
    return array[()] if array.ndim == 0 else array
