"""``session.explain``: the units of a step, the tier of each, why, and what it has cost."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.passes.program.program import Node
from runnel.passes.structure.structured import operation_names
from runnel.runtime.devices.device_memory import peak_memory_of_devices
from runnel.runtime.report.tier_reason import reason_for, tier_of
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.schedule.unit import BlockingUnit, BoundUnit, SegmentUnit
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.segment.variants import Timing, Variant
from runnel.runtime.state.in_thread import uninterrupted

if TYPE_CHECKING:
    from runnel.runtime.compile.executable import Executable

OPTIMIZED = "optimized"


@dataclass(frozen=True, slots=True)
class Times:
    """How often something ran in one tier, and what a run took."""

    runs: int
    seconds: float
    """The mean of those that were timed; 0 if none was."""
    fastest: float
    timed: int
    """How many were: every interpreted one, the compiled ones now and then."""

    @staticmethod
    def of(timing: Timing) -> Times | None:
        """What was noted; None if nothing ran."""
        runs = max(timing.calls, timing.runs)
        if not runs:
            return None
        mean = timing.seconds / max(timing.runs, 1)
        return Times(runs, mean, timing.fastest if timing.runs else 0.0, timing.runs)


@dataclass(frozen=True, slots=True)
class ForShapes:
    """A unit for one signature: the shapes of what it takes."""

    shapes: tuple[tuple[int, ...], ...]
    tier: str
    why: str
    interpreted: Times | None
    compiled: Times | None
    memory: int
    """Bytes that a compiled run takes beside its inputs and variables."""
    hlo: str | None


@dataclass(frozen=True, slots=True)
class UnitExplanation:
    """A unit of a step: a segment, a region that runs dynamically, an operation that waits."""

    kind: str
    operations: tuple[str, ...]
    device: str
    tier: str
    why: str
    state_bytes: int
    """Bytes of the variables that it reads and replaces."""
    signatures: tuple[ForShapes, ...] = ()
    stretches: tuple[UnitExplanation, ...] = ()
    """What may be compiled inside a region."""


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """How a session runs a step; ``str`` gives a table, :meth:`to_html` a page."""

    runs: int
    units: tuple[UnitExplanation, ...]
    counts: dict[str, int] = field(default_factory=dict)
    """Of the process: executables compiled and loaded from disk, its peak memory in bytes, and that
    of each device that tells."""

    def __iter__(self) -> Iterator[UnitExplanation]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)

    def __str__(self) -> str:
        from runnel.runtime.report.step_page import step_text

        return step_text(self)

    def to_html(self) -> str:
        """The same as a page that needs nothing else."""
        from runnel.runtime.report.step_page import step_page

        return step_page(self)

    def save(self, path: Any) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")


def explain_step(plan: StepPlan, hlo: bool | str) -> StepExplanation:
    """Explains a plan as it is now.

    ``hlo`` shows the programs of compiled units: True as XLA was given them, "optimized" as it runs
    them.
    """
    if hlo not in (False, True, OPTIMIZED):
        raise ValueError(f"hlo is {hlo!r}; it must be False, True or {OPTIMIZED!r}")
    units = tuple(_unit(unit, plan, hlo) for unit in plan.schedule.units)
    return StepExplanation(plan.runs, units, _counts())


def part_elsewhere(task: str, operations: Sequence[str]) -> UnitExplanation:
    """The part of a step that another task runs, of which only the operations are known here."""
    why = "another task runs it: a session of that task's own process can explain it"
    return UnitExplanation("part", tuple(operations), task, "elsewhere", why, 0)


def _unit(unit: BoundUnit, plan: StepPlan, hlo: bool | str) -> UnitExplanation:
    if isinstance(unit, SegmentUnit):
        return _segment(unit.runner, plan, hlo)
    if isinstance(unit, BlockingUnit):
        name = unit.node.op.name
        return UnitExplanation(
            "operation", (name,), _device(unit.node, plan), "interpreted", "it may have to wait", 0
        )
    stretches = tuple(_segment(runner, plan, hlo) for runner in unit.runners)
    names = tuple(name for stretch in stretches for name in stretch.operations)
    why = "it blocks, spans devices, or has no form that compiles: it runs as its data arrive"
    return UnitExplanation("region", names, "", "dynamic", why, 0, stretches=stretches)


def _segment(runner: SegmentRunner, plan: StepPlan, hlo: bool | str) -> UnitExplanation:
    nodes = runner.segment.nodes
    variants = list(runner._variants._known.values())
    return UnitExplanation(
        "segment" if runner.segment.compilable else "host segment",
        tuple(operation_names(nodes)),
        _device(nodes[-1], plan),
        _most(tier_of(runner, variant) for variant in variants) or tier_of(runner, None),
        reason_for(runner, max(variants, key=_runs, default=None)),
        _state_bytes(runner),
        tuple(_for_shapes(runner, variant, hlo) for variant in variants),
    )


def _device(node: Node, plan: StepPlan) -> str:
    return plan.device_of(node.op).name.rpartition("device:")[2]


def _runs(variant: Variant) -> float:
    return variant.interpreted.runs + (math.inf if variant.executable is not None else 0)


def _most(tiers: Iterator[str]) -> str:
    found = list(dict.fromkeys(tiers))
    return " and ".join(found)


def _state_bytes(runner: SegmentRunner) -> int:
    with runner._task.lock:
        cells = dict.fromkeys([*runner.state.load_cells, *runner.state.stored])
        return sum(getattr(cell.held, "nbytes", 0) for cell in cells)


def _for_shapes(runner: SegmentRunner, variant: Variant, hlo: bool | str) -> ForShapes:
    bound = variant.executable
    executable = bound.executable if bound is not None else None
    return ForShapes(
        tuple(tuple(int(size) for size in np.atleast_1d(shape)) for shape in variant.input_shapes),
        tier_of(runner, variant),
        reason_for(runner, variant),
        Times.of(variant.interpreted),
        Times.of(variant.compiled),
        executable.needed_bytes if executable is not None else 0,
        _program_text(executable, hlo) if executable is not None and hlo else None,
    )


def _program_text(executable: Executable, hlo: bool | str) -> str | None:
    if hlo == OPTIMIZED:
        text = executable.compiled.as_text()
        return None if text is None else str(text)
    return str(uninterrupted(executable.lower).as_text())


def _counts() -> dict[str, int]:
    found: dict[str, int] = {}
    cache = sys.modules.get("runnel.runtime.compile.executable_cache")
    if cache is not None:
        found |= {name: int(count) for name, count in cache.counts.items()}
        found |= peak_memory_of_devices()
    try:
        import resource
    except ImportError:  # not on Windows
        return found
    unit = 1 if sys.platform == "darwin" else 1024
    found["peak memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return found
