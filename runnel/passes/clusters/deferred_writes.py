"""Moves updates behind everything that can fail, since a failed step should change nothing.

A step that the host, or another device, cuts into segments stores segment by segment. An update
that nothing needs before the end of the step moves behind everything that can fail. An update stays
in its place, and stays made when a later part of the step fails, if its result, or its end, is
needed by a node on the host or on another device.
"""

from __future__ import annotations

from collections.abc import Mapping

from runnel.graph.operation import Operation
from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess

_NEVER_FAIL = frozenset({"Const", "Identity", "NoOp", "Shape", "Size", "Rank"})


def deferred_writes(
    program: Program, state: StateAccess, phases: Mapping[int, list[Node]], turns: int
) -> dict[Node, int]:
    """The first phase in which each update may be that is put behind what can fail.

    ``turns`` is the number of kinds of phases, which take turns: a node stays in those of its kind.
    """
    if len(phases) <= 1:
        return {}
    can_fail = [p for p, nodes in phases.items() if any(_can_fail(n, p, program) for n in nodes)]
    last = max(can_fail, default=0)
    phase_of = {node: phase for phase, nodes in phases.items() for node in nodes}
    early = [n for n, phase in phase_of.items() if phase < last and _writes(n, state)]
    if not early:
        return {}
    latest = _latest_phases(program, state, phase_of, turns)
    found: dict[Node, int] = {}
    for node in early:
        phase = phase_of[node]
        wanted = last + (phase - last) % turns
        possible = latest[node]
        if possible is not None and possible < wanted:
            wanted = possible - (possible - phase) % turns
        if wanted > phase:
            found[node] = wanted
    return found


def _writes(node: Node, state: StateAccess) -> bool:
    return node.op_def.stateful and not node.op_def.variable and bool(state.writes(node))


def _can_fail(node: Node, phase: int, program: Program) -> bool:
    op_def = node.op_def
    if op_def.variable or op_def.name in _NEVER_FAIL:
        return False
    if phase % 2 or any("check" in kernel.parameters for kernel in op_def.kernels):
        return True
    return not all(is_fully_defined(program.infos[value].dims) for value in node.inputs)


def _latest_phases(
    program: Program, state: StateAccess, phase_of: Mapping[Node, int], turns: int
) -> dict[Node, int | None]:
    """The last phase in which each node may be, given those that do not move; None: any.

    Updates and reads may move, and pure nodes with them.
    """
    users: dict[int, list[Node]] = {}
    followers: dict[Node, list[Node]] = {}
    later: dict[Operation, list[Node]] = {}
    latest: dict[Node, int | None] = {}
    for node in reversed(program.nodes):
        if node not in phase_of:
            continue
        touched: list[Operation] = []
        after = [user for value in node.outputs for user in users.get(value, ())]
        after += followers.get(node, ())
        if state.touches(node):
            touched = list(dict.fromkeys((*state.reads(node), *state.writes(node))))
            after += [n for variable in touched for n in later.get(variable, ())]
        phase = phase_of[node]
        if node.op_def.stateful and not touched and node.op_def.name != "NoOp":
            latest[node] = phase  # what the outside world sees stays where it is
        else:
            limits = [limit for user in after if (limit := latest[user]) is not None]
            latest[node] = _of_kind(min(limits), phase, turns) if limits else None
        for value in node.inputs:
            users.setdefault(value, []).append(node)
        for control in node.control:
            followers.setdefault(control, []).append(node)
        for variable in touched:
            later.setdefault(variable, []).append(node)
    return latest


def _of_kind(limit: int, phase: int, turns: int) -> int:
    """The last phase up to ``limit`` of the kind of ``phase``."""
    return max(phase, limit - (limit - phase) % turns)
