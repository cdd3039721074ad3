"""A dynamic step laid out for ``runnel.runtime.dataflow``: tasks, slots, pending counts, edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.registry import INTERPRETED
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES
from runnel.passes.frames import Frame, Frames, loop_of
from runnel.passes.kernel_call import bind, bind_blocking, fail_now, select
from runnel.passes.program import Node, Program, ValueInfo
from runnel.runtime import verification

PLAIN, CONSTANT, VARIABLE, SWITCH, MERGE, ENTER, EXIT, NEXT, PASS, TRIGGER, BLOCKING = range(11)

DEAD = object()
"""A value on a branch that was not taken."""

_KINDS = {
    **dict.fromkeys(SWITCHES, SWITCH),
    **dict.fromkeys(MERGES, MERGE),
    **dict.fromkeys(ENTERS, ENTER),
    **dict.fromkeys(EXITS, EXIT),
    **dict.fromkeys(NEXT_ITERATIONS, NEXT),
    "LoopCond": PASS,
    "RefIdentity": PASS,
    "ControlTrigger": TRIGGER,
    "Const": CONSTANT,
}

# What lives for one step is an object, which only this executor passes on.
_STEP_RESOURCES = frozenset({"StackV2", "TensorArrayV3"})
DYNAMIC_OPS = (frozenset(_KINDS) - {"Const", "RefIdentity"}) | _STEP_RESOURCES
"""Op types that only this executor can run."""


class Task:
    """A node, bound to its kernel and to its place in its frame."""

    __slots__ = (
        "node",
        "kind",
        "call",
        "first",
        "last",
        "outputs",
        "merges",
        "controls",
        "references",
        "target",
        "is_constant",
        "rank",
        "infos",
    )

    def __init__(self, node: Node, kind: int, rank: int, first: int) -> None:
        self.node = node
        self.kind = kind
        self.rank = rank
        self.first = first
        """The slot of the first input; the others follow."""
        self.last = first + len(node.inputs)
        self.call: Callable[..., Any] | None = None
        self.outputs: list[list[tuple[int, int]]] = [[] for _ in node.outputs]
        """For each output: (slot, rank of the consumer)."""
        self.merges: list[list[tuple[int, int, int]]] = [[] for _ in node.outputs]
        """For each output: (rank, slot, index among the inputs) of the Merges that take it."""
        self.controls: list[int] = []
        """Ranks of the nodes that wait for this one without taking a value."""
        self.references = False
        """True when an input may denote a variable that the kernel must not see as such."""
        self.target: Layout | None = None
        self.is_constant = False
        self.infos: list[ValueInfo] = []
        """What is declared of the outputs of a blocking operation."""


class Layout:
    """What an iteration of a frame starts from: tasks by rank, slots, pending counts."""

    __slots__ = (
        "frame",
        "tasks",
        "size",
        "pending",
        "merge_inputs",
        "enters",
        "exits",
        "parent",
        "parallel_iterations",
    )

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.tasks: list[Task | Layout] = []
        self.size = 0
        self.pending: list[int] = []
        self.merge_inputs: dict[int, int] = {}
        self.enters = len(frame.enters)
        self.exits: list[Task] = []
        self.parent: Layout | None = None
        limits = [int(enter.attrs["parallel_iterations"]) for enter in frame.enters]
        self.parallel_iterations = max(1, min(limits, default=1))
        """How many iterations, from the first that is not over, may have begun."""


class StepLayout:
    """The tasks of a step, by frame, and where fed and fetched values are.

    ``sources`` are the ranks of the outermost tasks that wait for nothing; ``feeds`` and
    ``fed_merges`` are the edges of fed values; ``fetches`` are (slot, value number) pairs.
    """

    def __init__(self, program: Program, device: str) -> None:
        self._program = program
        self._aliases: set[int] = set()
        """Values that stand for a variable although they are not declared as references."""
        frames = Frames(program)
        layouts = {frame: Layout(frame) for frame in frames.frames}
        self.root = layouts[frames.outermost]
        tasks: dict[Node, Task] = {}
        for frame, layout in layouts.items():
            layout.parent = layouts[frame.parent] if frame.parent is not None else None
            for rank, item in enumerate(frame.items):
                if isinstance(item, Frame):
                    layout.tasks.append(layouts[item])
                    layout.pending.append(0)
                    continue
                task = tasks[item] = self._task(item, rank, layout, device)
                if task.kind == ENTER:
                    task.target = layouts[frames.leads_to[item]]
                    task.is_constant = bool(item.attrs["is_constant"])
                elif task.kind == EXIT:
                    layout.exits.append(task)
                layout.tasks.append(task)
        self.feeds: dict[int, list[tuple[int, int]]] = {v: [] for v in program.feeds.values()}
        self.fed_merges: dict[int, list[tuple[int, int, int]]] = {v: [] for v in self.feeds}
        self._connect(program, frames, tasks)
        self.sources = [
            task.rank
            for task in self.root.tasks
            if isinstance(task, Task) and self.root.pending[task.rank] == 0
        ]
        self.fetches = self._add_fetches(program, frames, tasks)

    def _task(self, node: Node, rank: int, layout: Layout, device: str) -> Task:
        kind = _KINDS.get(node.op_def.name, PLAIN)
        if node.op_def.variable:
            kind = VARIABLE
        elif node.op_def.blocking:
            kind = BLOCKING
        elif node.op_def.name == "Identity" and _stands_for_variable(node):
            kind = PASS
        task = Task(node, kind, rank, layout.size)
        layout.size += len(node.inputs)
        if kind == MERGE:
            layout.pending.append(1 + len(set(node.control)))
            layout.merge_inputs[rank] = len(node.inputs)
        else:
            layout.pending.append(len(node.inputs) + len(set(node.control)))
        infos = self._program.infos
        types = [infos[value].dtype for value in node.inputs]
        task.references = any(t.is_ref_dtype or t.name == "resource" for t in types)
        if kind == PASS and node.op_def.name == "Identity":
            self._aliases.update(node.outputs)
        elif not self._aliases.isdisjoint(node.inputs):
            task.references = True
        if kind == BLOCKING:
            task.call = bind_blocking(select(node, "CPU", INTERPRETED), node)
            task.infos = [infos[value] for value in node.outputs]
        elif kind == PLAIN:
            call = bind(select(node, device, INTERPRETED), node, np, check=fail_now)
            if verification.enabled:
                declared = [infos[v] for v in node.outputs if not infos[v].dtype.is_ref_dtype]
                call = verification.verified(call, node, declared)
            task.call = call
        return task

    def _connect(self, program: Program, frames: Frames, tasks: dict[Node, Task]) -> None:
        producers = program.producers()
        for node, task in tasks.items():
            for index, value in enumerate(node.inputs):
                producer = producers.get(value)
                slot = task.first + index
                if producer is None:
                    plain, merges = self.feeds[value], self.fed_merges[value]
                    if frames.runs_in[node] is not frames.outermost:
                        raise errors.InvalidArgumentError(
                            None,
                            node.op,
                            f"Input {index} of {node.op.name!r} is fed, but {node.op.name!r} is "
                            "inside a loop; feed a tensor outside the loop",
                        )
                else:
                    output = producer.outputs.index(value)
                    plain, merges = tasks[producer].outputs[output], tasks[producer].merges[output]
                if task.kind == MERGE:
                    merges.append((task.rank, slot, index))
                else:
                    plain.append((slot, task.rank))
            for control in set(node.control):
                tasks[control].controls.append(task.rank)

    def _add_fetches(
        self, program: Program, frames: Frames, tasks: dict[Node, Task]
    ) -> list[tuple[int, int]]:
        """A slot for each fetch, as an input of a node that never runs; (slot, value number)."""
        root = self.root
        producers = program.producers()
        rank = len(root.pending)
        found: dict[int, int] = {}
        for value in program.fetches:
            if value in found:
                continue
            slot = found[value] = root.size
            root.size += 1
            producer = producers.get(value)
            if producer is None:
                self.feeds[value].append((slot, rank))
                continue
            if frames.leads_to[producer] is not frames.outermost:
                raise loop_of(frames.leads_to[producer], producer.op)
            tasks[producer].outputs[producer.outputs.index(value)].append((slot, rank))
        root.pending.append(len(found) + 1)
        return [(found[value], value) for value in program.fetches]


def _stands_for_variable(node: Node) -> bool:
    """True for ``<variable>/read``, which is read where it is used (``passes.variable_reads``)."""
    source = node.op.inputs[0].op
    return source.op_def.variable and node.op.name == f"{source.name}/read" and not node.control
