"""A region laid out for ``runtime.dynamic.region``: tasks, slots, pending counts, edges.

A *task* of a region is a node or a stretch (and no task of a cluster).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel.graph.operation import Operation
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES
from runnel.ops.send_recv import recv_op, send_op
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.frame_units import Unit, awaited_blocking
from runnel.passes.program.kernel_call import blocking, interpreted
from runnel.passes.program.program import Node, Program, ValueInfo, is_constant
from runnel.passes.program.reached_state import ReachedState
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.frames import Frame, Frames
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.stretch import Stretch

PLAIN, CONSTANT, VARIABLE, SWITCH, MERGE, ENTER, EXIT, NEXT, PASS, TRIGGER = range(10)
BLOCKING, STRETCH = range(10, 12)

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
_PASSING = frozenset({SWITCH, MERGE, ENTER, EXIT, NEXT, PASS})


class Task:
    """A node, bound to its kernel and to its place in its frame; or a stretch of nodes."""

    __slots__ = (
        *("node", "kind", "rank", "inputs", "first", "last", "call", "stretch", "outputs"),
        *("merges", "controls", "references", "takes_numpy", "target", "is_constant", "infos"),
        *("results", "exchanges", "sends", "followers"),
    )

    def __init__(self, node: Node, kind: int, rank: int, first: int, unit: Node | Stretch) -> None:
        self.node = node
        """The node; of a stretch the last one."""
        self.kind = kind
        self.rank = rank
        self.inputs = unit.inputs
        self.results = unit.outputs
        self.first = first
        """The slot of the first input; the others follow."""
        self.last = first + len(unit.inputs)
        self.call: Callable[..., Any] | None = None
        self.stretch: Stretch | None = None if isinstance(unit, Node) else unit
        self.outputs: list[list[tuple[int, int]]] = [[] for _ in unit.outputs]
        """For each output: (slot, rank of the consumer)."""
        self.merges: list[list[tuple[int, int, int]]] = [[] for _ in unit.outputs]
        """For each output: (rank, slot, index among the inputs) of the Merges that take it."""
        self.controls: list[int] = []
        """Ranks of the nodes that wait for this one without taking a value."""
        self.followers: list[int] = []
        """Ranks of those that touch the same variable next, whether this one runs or is dead."""
        self.references = False
        """True when an input may denote a variable that the kernel must not see as such."""
        self.takes_numpy = False
        """True when an input may be an array of JAX, which the kernel must not see as such."""
        self.target: Layout | None = None
        self.is_constant = False
        self.infos: list[ValueInfo] = []
        """What is declared of the outputs of a blocking operation."""
        self.sends = node.op_def is send_op
        """True when another part of the step waits to hear of it, dead or alive."""
        self.exchanges = self.sends or node.op_def is recv_op


class Layout:
    """What an iteration of a frame starts from: tasks by rank, slots, pending counts."""

    __slots__ = (
        *("frame", "rank", "tasks", "size", "pending", "merge_inputs", "enters", "exits"),
        *("parent", "parallel_iterations", "function", "followers"),
    )

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.rank = -1
        """Its place among the parent's tasks."""
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
        self.followers: list[int] = []
        """As those of a task: when the loop has ended."""
        self.function: Callable[..., Any] | None = None
        """Runs the whole loop, where that is known to be possible (``loop_code``)."""


class StepLayout:
    """The tasks of a step, by frame, and where fed and fetched values are.

    ``sources`` are the ranks of the outermost tasks that wait for nothing; ``feeds`` and
    ``fed_merges`` are the edges of fed values; ``fetches`` are (slot, value number) pairs.
    """

    def __init__(
        self,
        program: Program,
        frames: Frames,
        units: Mapping[Frame, Sequence[Unit]],
        device: str,
        bind_stretch: Callable[[Segment], Stretch],
    ) -> None:
        self._program = program
        self._device = device
        self._aliases = {
            v for node in program.nodes if is_variable_read(node) for v in node.outputs
        }
        """Values that stand for a variable although they are not declared as references."""
        self.layouts = {frame: Layout(frame) for frame in frames.frames}
        self.root = self.layouts[frames.outermost]
        self.tasks: dict[Node, Task] = {}
        """The task of each node, its own or its stretch's; by original node and by copy."""
        all_tasks: list[Task] = []
        originals = {(node.op, node.outputs): node for node in program.nodes}
        for frame, layout in self.layouts.items():
            layout.parent = self.layouts[frame.parent] if frame.parent is not None else None
            for rank, unit in enumerate(units[frame]):
                if isinstance(unit, Frame):
                    inner = self.layouts[unit]
                    inner.rank = rank
                    layout.tasks.append(inner)
                    layout.pending.append(0)
                    continue
                if isinstance(unit, Segment):
                    nodes = [originals[node.op, node.outputs] for node in unit.nodes]
                    task = self._stretch_task(bind_stretch(unit), nodes, rank, layout)
                    for node in nodes:
                        if not is_constant(node):
                            self.tasks[node] = task
                else:
                    task = self.tasks[unit] = self._task(unit, rank, layout)
                    if task.kind == ENTER:
                        task.target = self.layouts[frames.leads_to[unit]]
                        task.is_constant = bool(unit.attrs["is_constant"])
                    elif task.kind == EXIT:
                        layout.exits.append(task)
                layout.tasks.append(task)
                all_tasks.append(task)
        self.feeds: dict[int, list[tuple[int, int]]] = {v: [] for v in program.feeds.values()}
        self.fed_merges: dict[int, list[tuple[int, int, int]]] = {v: [] for v in self.feeds}
        self._made_by = {
            value: (task, position)
            for task in all_tasks
            for position, value in enumerate(task.results)
        }
        self._connect(all_tasks)
        if any(node.op_def.blocking for node in program.nodes):
            self._keep_order(ReachedState(program))
        self.on_device = self._find_on_device(all_tasks)
        """Values that may be arrays of JAX."""
        self.sources = [
            task.rank
            for task in self.root.tasks
            if isinstance(task, Task) and self.root.pending[task.rank] == 0
        ]
        self.fetches = self._add_fetches(program)

    # Tasks ----------------------------------------------------------------------------------

    def _task(self, node: Node, rank: int, layout: Layout) -> Task:
        kind = _KINDS.get(node.op_def.name, PLAIN)
        if node.op_def.variable:
            kind = VARIABLE
        elif node.op_def.blocking:
            kind = BLOCKING
        elif is_variable_read(node):
            kind = PASS
        task = Task(node, kind, rank, layout.size, node)
        layout.size += len(node.inputs)
        if kind == MERGE:
            layout.pending.append(1 + len(self._awaited([node])))
            layout.merge_inputs[rank] = len(node.inputs)
        else:
            layout.pending.append(len(node.inputs) + len(self._awaited([node])))
        infos = self._program.infos
        task.references = self._takes_references(node.inputs)
        if kind == BLOCKING:
            task.call = blocking(node)
            task.infos = [infos[value] for value in node.outputs]
        elif kind == PLAIN:
            task.call = verification.verified(interpreted(node, self._device), node, infos)
        return task

    def _takes_references(self, values: Sequence[int]) -> bool:
        types = [self._program.infos[value].dtype for value in values]
        declared = any(t.is_ref_dtype or t.name == "resource" for t in types)
        return declared or not self._aliases.isdisjoint(values)

    def _stretch_task(
        self, stretch: Stretch, nodes: Sequence[Node], rank: int, layout: Layout
    ) -> Task:
        task = Task(stretch.nodes[-1], STRETCH, rank, layout.size, stretch)
        layout.size += len(task.inputs)
        layout.pending.append(len(task.inputs) + len(self._awaited(nodes)))
        task.references = self._takes_references(task.inputs)
        return task

    @staticmethod
    def _awaited(nodes: Sequence[Node]) -> list[Node]:
        """What ``nodes``, one task, wait for without taking a value, in other tasks."""
        own = set(nodes)
        awaited = dict.fromkeys(control for node in nodes for control in node.control)
        return [c for c in awaited if c not in own and not is_constant(c)]

    # Edges ----------------------------------------------------------------------------------

    def _connect(self, tasks: list[Task]) -> None:
        nodes_of: dict[Task, list[Node]] = {}
        for node, task in self.tasks.items():
            nodes_of.setdefault(task, []).append(node)
        for task in tasks:
            for index, value in enumerate(task.inputs):
                slot = task.first + index
                made = self._made_by.get(value)
                if made is None:
                    plain, merges = self.feeds[value], self.fed_merges[value]
                else:
                    producer, output = made
                    plain, merges = producer.outputs[output], producer.merges[output]
                if task.kind == MERGE:
                    merges.append((task.rank, slot, index))
                else:
                    plain.append((slot, task.rank))
            for control in self._awaited(nodes_of[task]):
                self.tasks[control].controls.append(task.rank)

    def _keep_order(self, state: ReachedState) -> None:
        """Has what touches a variable wait for what did before it, where that may come late."""
        waits = awaited_blocking(self._program)
        late = [node for node in self._program.nodes if node.op_def.blocking or waits[node]]
        written = {variable for node in self.tasks for variable in state.writes(node)}
        written &= {v for node in late for v in (*state.reads(node), *state.writes(node))}
        for frame, layout in self.layouts.items():
            readers: dict[Operation, set[int]] = {}
            writer: dict[Operation, set[int]] = {}
            for item in frame.items:
                nodes = item.nodes() if isinstance(item, Frame) else [item]
                writes = {variable for node in nodes for variable in state.writes(node)}
                reads = {variable for node in nodes for variable in state.reads(node)}
                touched = written.intersection(reads | writes)
                if not touched:
                    continue
                rank = (self.layouts[item] if isinstance(item, Frame) else self.tasks[item]).rank
                earlier: set[int] = set()
                for variable in touched:
                    earlier |= writer.get(variable, set())
                    if variable in writes:
                        earlier |= readers.pop(variable, set())
                        writer[variable] = {rank}
                    else:
                        readers.setdefault(variable, set()).add(rank)
                self._follow(layout, rank, earlier)
                layout.parallel_iterations = 1

    def _follow(self, layout: Layout, rank: int, earlier: set[int]) -> None:
        unit = layout.tasks[rank]
        begins = [unit]
        if isinstance(unit, Layout):  # a loop begins with what enters it
            begins = [self.tasks[enter] for enter in unit.frame.enters]
        for other in earlier.difference({rank}, [begun.rank for begun in begins]):
            layout.tasks[other].followers.extend(begun.rank for begun in begins)
            for begun in begins:
                layout.pending[begun.rank] += 1

    def _find_on_device(self, tasks: list[Task]) -> set[int]:
        """Finds what stretches give, and tells the tasks that take it."""
        found = {value for task in tasks if task.kind == STRETCH for value in task.results}
        changed = bool(found)
        while changed:  # values may go around loops
            changed = False
            for task in tasks:
                if task.kind in _PASSING and not found.isdisjoint(task.inputs):
                    changed = changed or task.results[0] not in found
                    found.update(task.results)
        for task in tasks:
            task.takes_numpy = task.kind in (PLAIN, BLOCKING) and not found.isdisjoint(task.inputs)
        return found

    def _add_fetches(self, program: Program) -> list[tuple[int, int]]:
        """A slot for each fetch, as an input of a node that never runs; (slot, value number)."""
        root = self.root
        rank = len(root.pending)
        found: dict[int, int] = {}
        for value in program.fetches:
            if value in found:
                continue
            slot = found[value] = root.size
            root.size += 1
            if value in self._made_by:
                task, output = self._made_by[value]
                task.outputs[output].append((slot, rank))
            else:
                self.feeds[value].append((slot, rank))
        root.pending.append(len(found) + 1)
        return [(found[value], value) for value in program.fetches]
