"""``session.explain``: the units of a step, the tier of each, why, and what it has cost."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from runnel.passes.program.program import Node, is_constant
from runnel.passes.structure.structured import nested_nodes, structure_of
from runnel.runtime.report.tier_reason import reason_for, tier_of
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.schedule.unit import BlockingUnit, BoundUnit, SegmentUnit
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.segment.variants import Timing, Variant


@dataclass(frozen=True, slots=True)
class Times:
    """How often something ran in one tier, and what a run took."""

    runs: int
    seconds: float
    fastest: float

    @staticmethod
    def of(timing: Timing) -> Times | None:
        """What was noted; None if nothing ran."""
        if not timing.runs:
            return None
        return Times(timing.runs, timing.seconds / timing.runs, timing.fastest)


@dataclass(frozen=True, slots=True)
class ForShapes:
    """A unit for one signature: the shapes of what it takes."""

    shapes: tuple[tuple[int, ...], ...]
    tier: str
    why: str
    interpreted: Times | None
    compiled: Times | None
    """Of the first runs that were compiled, which are timed; None where compiling was forced."""
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
    """Of the process: executables compiled and loaded from disk, peak memory in bytes."""

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


def explain_step(plan: StepPlan, hlo: bool) -> StepExplanation:
    """Explains a plan as it is now."""
    units = tuple(_unit(unit, plan, hlo) for unit in plan.schedule.units)
    return StepExplanation(plan.runs, units, _counts())


def _unit(unit: BoundUnit, plan: StepPlan, hlo: bool) -> UnitExplanation:
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


def _segment(runner: SegmentRunner, plan: StepPlan, hlo: bool) -> UnitExplanation:
    nodes = runner.segment.nodes
    variants = list(runner._variants._known.values())
    return UnitExplanation(
        "segment" if runner.segment.compilable else "host segment",
        tuple(_names(nodes)),
        _device(nodes[-1], plan),
        _most(tier_of(runner, variant) for variant in variants) or tier_of(runner, None),
        reason_for(runner, max(variants, key=_runs, default=None)),
        _state_bytes(runner),
        tuple(_for_shapes(runner, variant, hlo) for variant in variants),
    )


def _names(nodes: Sequence[Node]) -> list[str]:
    """The user's operations, those inside of loops and branches too, but no constants."""
    inner = (node for node in nested_nodes(nodes) if structure_of(node) is None)
    return list(dict.fromkeys(n.op.name for n in inner if not is_constant(n)))


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
        return sum(getattr(cell.value, "nbytes", 0) for cell in cells)


def _for_shapes(runner: SegmentRunner, variant: Variant, hlo: bool) -> ForShapes:
    bound = variant.executable
    executable = bound.executable if bound is not None else None
    text = None
    if hlo and executable is not None:
        import jax

        with jax.enable_x64(True):
            text = executable.lower().as_text()
    return ForShapes(
        tuple(tuple(int(size) for size in np.atleast_1d(shape)) for shape in variant.input_shapes),
        tier_of(runner, variant),
        reason_for(runner, variant),
        Times.of(variant.interpreted),
        Times.of(variant.compiled),
        executable.needed_bytes if executable is not None else 0,
        text,
    )


def _counts() -> dict[str, int]:
    found: dict[str, int] = {}
    cache = sys.modules.get("runnel.runtime.compile.executable_cache")
    if cache is not None:
        found |= {name: int(count) for name, count in cache.counts.items()}
    try:
        import resource
    except ImportError:  # not on Windows
        return found
    unit = 1 if sys.platform == "darwin" else 1024
    found["peak memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return found
