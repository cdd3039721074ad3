"""The frames of a program: the loop in which each node runs, and the order in which nodes begin.

The ``Enter`` ops of one name lead into one frame; the whole step is the outermost. A node runs in
the frame from which its inputs come: ``Enter`` leads into a child, ``Exit`` back to the parent.

Within an iteration nodes begin in the order of construction, as far as edges allow. A child frame
is one item of that order: all its iterations run when everything that enters it is there. A node
that was constructed later, but that an earlier one needs (such as the stack to which a gradient
makes a loop push its values), begins just before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from runnel.graph.errors import InvalidArgumentError
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS
from runnel.passes.program.program import Node, Program

T = TypeVar("T")


class Frame:
    """One loop, or the step around all of them: its items in the order in which they begin."""

    __slots__ = ("name", "parent", "items", "enters", "rank")

    def __init__(self, name: str, parent: Frame | None) -> None:
        self.name = name
        self.parent = parent
        self.items: list[Node | Frame] = []
        self.enters: list[Node] = []
        """The nodes of the parent that lead into this frame."""
        self.rank = -1
        """Its place among the parent's items."""

    def nodes(self) -> list[Node]:
        """The nodes that run in this frame and in those that begin in it."""
        found: list[Node] = []
        for item in self.items:
            found += item.nodes() if isinstance(item, Frame) else [item]
        return found

    def is_inside(self, other: Frame) -> bool:
        """True for ``other`` itself and the frames that begin in it."""
        frame: Frame | None = self
        while frame is not None and frame is not other:
            frame = frame.parent
        return frame is other

    def __repr__(self) -> str:
        return f"<Frame {self.name or 'outermost'!r}>"


class Frames:
    """The frames of a program.

    ``runs_in`` maps each node to its frame, and ``leads_to`` to the frame of its outputs, which is
    another for ``Enter`` and ``Exit``. Parents come before their children in ``frames``.

    ``passes.structure`` raises well-formed frames, innermost first, to one node of their parent;
    those that are not raised run dynamically, from here.
    """

    def __init__(self, program: Program) -> None:
        self.outermost = Frame("", None)
        self.frames = [self.outermost]
        self.runs_in: dict[Node, Frame] = {}
        self.leads_to: dict[Node, Frame] = {}
        self._producers = program.producers()
        self._children: dict[tuple[Frame, str], Frame] = {}
        for node in program.nodes:
            self._place(node)
        self.variables: set[Node] = set()
        """The Merge that begins each loop variable."""
        for node in program.nodes:
            if node.op_def.name in MERGES:
                self._check_back_edges(node)
        members: dict[Frame, list[Node | Frame]] = {frame: [] for frame in self.frames}
        for node in sorted(program.nodes, key=lambda node: node.op.id):
            if node.op_def.name in ENTERS:
                child = self.leads_to[node]
                if not child.enters:
                    members[self.runs_in[node]].append(child)
                child.enters.append(node)
            members[self.runs_in[node]].append(node)
        for frame, items in members.items():
            frame.items = each_after_its_needs(items, partial(self._needs, frame))
            for rank, item in enumerate(frame.items):
                if isinstance(item, Frame):
                    item.rank = rank

    # Where nodes run ------------------------------------------------------------------------

    def _sources(self, node: Node) -> list[Node]:
        """The nodes for which ``node`` waits in its own iteration."""
        found = []
        for value in node.inputs:
            producer = self._producers.get(value)
            if producer is not None and not _is_back_edge(producer, node):
                found.append(producer)
        found += node.control
        return found

    def _place(self, node: Node) -> None:
        frame: Frame | None = None
        first: Node | None = None
        for source in self._sources(node):
            reached = self.leads_to[source]
            if frame is None or first is None:
                frame, first = reached, source
            elif frame is not reached:
                raise _mixed(node, (first, frame), (source, reached))
        frame = frame or self.outermost
        self.runs_in[node] = self.leads_to[node] = frame
        kind = node.op_def.name
        if kind in ENTERS:
            self.leads_to[node] = self._child(frame, node.attrs["frame_name"])
        elif kind in EXITS:
            if frame.parent is None:
                raise InvalidArgumentError(
                    None,
                    node.op,
                    f"{node.op.name!r} ({kind}) leaves a loop, but its input is not inside one; "
                    "bring it into a frame with Enter",
                )
            self.leads_to[node] = frame.parent

    def _child(self, parent: Frame, name: str) -> Frame:
        child = self._children.get((parent, name))
        if child is None:
            child = self._children[parent, name] = Frame(name, parent)
            self.frames.append(child)
        return child

    def _check_back_edges(self, node: Node) -> None:
        for value in node.inputs:
            producer = self._producers.get(value)
            if producer is not None and _is_back_edge(producer, node):
                self.variables.add(node)
            if producer is not None and self.leads_to[producer] is not self.runs_in[node]:
                entry = next(s for s in self._sources(node) if s is not producer)
                raise _mixed(
                    node,
                    (entry, self.leads_to[entry]),
                    (producer, self.leads_to[producer]),
                )

    def _needs(self, frame: Frame, item: Node | Frame) -> list[Node | Frame]:
        if isinstance(item, Frame):
            return list(item.enters)
        found: list[Node | Frame] = []
        for source in self._sources(item):
            runs_in = self.runs_in[source]
            if runs_in is frame:
                found.append(source)
            elif runs_in.parent is frame:
                found.append(runs_in)  # an Exit: when its loop has run
        return found


def each_after_its_needs(
    items: Iterable[T],
    needs: Callable[[T], Sequence[T]],
    meet_again: Callable[[T], object] = id,
) -> list[T]:
    """``items`` as given, but each after those that it needs.

    ``meet_again`` is told of an item that waits for itself; unless it raises, that comes last.
    """
    ordered: dict[T, None] = {}
    for start in items:
        stack: list[tuple[T, bool]] = [(start, False)]
        begun: set[T] = set()
        while stack:
            item, needs_are_there = stack.pop()
            if item in ordered:
                continue
            if needs_are_there:
                ordered[item] = None
            elif item in begun:
                meet_again(item)
            else:
                begun.add(item)
                stack.append((item, True))
                stack += [(n, False) for n in reversed(needs(item)) if n not in ordered]
    return list(ordered)


def _is_back_edge(producer: Node, consumer: Node) -> bool:
    return producer.op_def.name in NEXT_ITERATIONS and consumer.op_def.name in MERGES


def _mixed(node: Node, one: tuple[Node, Frame], other: tuple[Node, Frame]) -> InvalidArgumentError:
    def where(found: tuple[Node, Frame]) -> str:
        source, frame = found
        return f"{source.op.name!r} is {f'in the loop {frame.name!r}' if frame.name else 'in none'}"

    return InvalidArgumentError(
        None,
        node.op,
        f"{node.op.name!r} has inputs of different loops: {where(one)}, {where(other)}. A value "
        "comes into a loop through Enter and out of it through Exit (tf.while_loop does both for "
        "its loop variables)",
    )
