"""Which tier a segment runs in, and why, in words."""

from __future__ import annotations

from runnel.passes.structure.structured import nested_nodes
from runnel.runtime.devices.devices import compiles_for_host
from runnel.runtime.segment.compile_cost import compile_cost
from runnel.runtime.segment.tier_choice import is_interpreted_badly
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.segment.variants import Variant
from runnel.runtime.state.options import ALWAYS, NEVER

INTERPRETED, COMPILED, COMPILING, IN_PIECES, NOT_RUN = (
    "interpreted",
    "compiled",
    "being compiled",
    "in pieces",
    "not run",
)


def tier_of(runner: SegmentRunner, variant: Variant | None) -> str:
    """The tier in which a segment would run now, for one signature."""
    if runner._mode == NEVER:
        return INTERPRETED
    if variant is None:
        return NOT_RUN
    if variant.cut is not None or runner.by_shapes is not None:
        return IN_PIECES
    if variant.executable is not None:
        return COMPILED
    return COMPILING if variant in runner.compilations.running else INTERPRETED


def reason_for(runner: SegmentRunner, variant: Variant | None) -> str:
    """Why that is its tier."""
    if runner._mode == NEVER:
        return _why_never(runner)
    if variant is not None and runner.by_shapes is not None:
        return "shapes change from step to step: what keeps its own is compiled apart"
    if variant is not None and variant.cut is not None:
        return "a loop in it has no compiled form for these shapes: what is around it is compiled"
    if variant is not None and any(cell.by_rows for cell in runner.state.load_cells):
        return "it takes a large table, whose rows are changed in place"
    if variant is not None and variant.slower and variant.executable is None:
        slow, fast = map(time_text, variant.compared)
        return f"compiled it was slower: {slow} against {fast}"
    if variant is not None and variant.refused:
        return "compiling it failed; the log of runnel says why"
    if not runner._can_interpret:
        return "it has an operation that exists only compiled"
    if runner._mode == ALWAYS:
        return "the session compiles whatever it can (global_jit_level)"
    if runner._device != "CPU":
        return "it runs on an accelerator, where everything is compiled"
    if runner.choice.is_heavy:
        heavy = next(n for n in nested_nodes(runner.segment.nodes) if is_interpreted_badly(n))
        return f"interpreting {heavy.op.name!r} ({heavy.op_def.name}) would take far longer"
    if variant is None:
        return "it has not been run"
    return _why_by_cost(runner, variant)


def _why_never(runner: SegmentRunner) -> str:
    if not runner.segment.compilable:
        hosts = [node for node in runner.segment.nodes if node.op_def.host]
        node = (hosts or list(runner.segment.nodes))[0]
        return f"{node.op.name!r} ({node.op_def.name}) runs on the host"
    if runner._device == "CPU" and not compiles_for_host():
        return "JAX has no CPU here to compile for"
    if runner.only_reads:
        return "it computes nothing"
    return "the session compiles nothing (global_jit_level)"


def _why_by_cost(runner: SegmentRunner, variant: Variant) -> str:
    spent = variant.interpreted
    cost = compile_cost.seconds_to_begin() + compile_cost.seconds(runner._compiler.expected_count)
    if variant.executable is not None:
        taken = time_text(spent.seconds)
        return f"interpreting it had taken {taken}: more than compiling beside it costs"
    if not spent.runs:
        return "it has not been run for these shapes"
    if spent.fastest <= runner.choice.dispatch_seconds:
        call = time_text(runner.choice.dispatch_seconds)
        return f"a run takes {time_text(spent.fastest)}; a compiled call alone takes about {call}"
    so_far = f"interpreting it has taken {time_text(spent.seconds)} so far"
    return f"{so_far}; compiling is expected to take {time_text(cost)}"


def time_text(seconds: float) -> str:
    """A time for people."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
