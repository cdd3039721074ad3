"""Branches that a step cannot take, because whoever prepares it knows the predicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.passes.program.program import Node, Program

_SWITCHES = ("Switch", "RefSwitch")
_MERGES = ("Merge", "RefMerge")


def settle_branches(program: Program, known: Mapping[Any, bool]) -> Program:
    """The program without the branches that ``known`` (values of tensors) rules out.

    A ``Switch`` on a known predicate passes its value on, and a ``Merge`` that only one branch can
    reach is that branch's value. A program that fetches what would have no value stays as it is.
    """
    ended: set[int] = set()
    while True:
        step = _Settling(program, known, ended)
        settled = step.settled()
        # A loop of which a part is ruled out never comes to its second iteration, nor to its end.
        found = {m.outputs[0] for m in settled.nodes if step.lacks_input(m)}
        if not found:
            return settled
        ended = ended | found


class _Settling:
    def __init__(self, program: Program, known: Mapping[Any, bool], ended: set[int]) -> None:
        self._ended = ended
        """What loops that cannot go on begin with."""
        self._program = program
        self._known = {n: known[t] for t, n in program.feeds.items() if t in known}
        self._tensors = known
        self._same: dict[int, int] = {}
        """Values that are another value."""
        self._dead: set[int] = set()
        self._dead_nodes: set[Node] = set()
        self._instead: dict[Node, tuple[Node, ...]] = {}
        """For a node that is gone or changed: those that whoever waited for it waits for."""
        self._makers: dict[int, Node] = {}
        self._seen = set(program.feeds.values())
        self._nodes: list[Node] = []

    def settled(self) -> Program:
        """The program without what cannot run."""
        program = self._program
        for node in program.nodes:
            self._visit(node)
            self._seen.update(node.outputs)
        if not self._instead:
            return program
        if any(number in self._dead for number in program.fetches):
            return program
        fetches = tuple(self._same.get(number, number) for number in program.fetches)
        return Program(self._nodes, program.feeds, fetches, program.infos)

    def lacks_input(self, node: Node) -> bool:
        """Whether a ``Merge`` that is left takes a value that nothing makes any more."""
        return node.op_def.name in _MERGES and any(n in self._dead for n in node.inputs)

    def _visit(self, node: Node) -> None:
        name = node.op_def.name
        if name in _MERGES:
            self._merge(node)
            return
        waits_for_dead = any(c in self._dead_nodes for c in node.control)
        if waits_for_dead or any(number in self._dead for number in node.inputs):
            self._dead.update(node.outputs)
            self._dead_nodes.add(node)
            self._instead[node] = ()
            return
        inputs = tuple(self._same.get(number, number) for number in node.inputs)
        if name in _SWITCHES and inputs[1] in self._known:
            taken = int(self._known[inputs[1]])
            self._same[node.outputs[taken]] = inputs[0]
            self._dead.add(node.outputs[1 - taken])
            if inputs[0] in self._known:
                self._known[node.outputs[taken]] = self._known[inputs[0]]
            self._instead[node] = self._waited(node, inputs[0])
            return
        if name == "Identity" and inputs[0] in self._known:
            self._known[node.outputs[0]] = self._known[inputs[0]]
        for tensor, number in zip(node.op.outputs, node.outputs, strict=False):
            if tensor in self._tensors:
                self._known[number] = self._tensors[tensor]
        self._keep(node, inputs)

    def _merge(self, node: Node) -> None:
        made = [number for number in node.inputs if number in self._seen]
        living = [number for number in made if number not in self._dead]
        stays = node.outputs[0] not in self._ended
        if stays and len(made) == len(node.inputs) and len(living) == 1:
            value = self._same.get(living[0], living[0])
            # The second output says which input it was; nothing that runs here asks.
            self._same[node.outputs[0]] = value
            if value in self._known:
                self._known[node.outputs[0]] = self._known[value]
            self._dead.update(node.outputs[1:])
            self._instead[node] = self._waited(node, value)
        elif not stays or (made and not living):
            # Also a loop that never begins: its end leads back from where nothing comes.
            self._dead.update(node.outputs)
            self._dead_nodes.add(node)
            self._instead[node] = ()
        else:
            self._keep(node, tuple(self._same.get(n, n) for n in node.inputs))

    def _waited(self, node: Node, value: int) -> tuple[Node, ...]:
        maker = self._makers.get(value)
        before = [d for c in node.control for d in self._instead.get(c, (c,))]
        return tuple(dict.fromkeys([*before, *([maker] if maker is not None else [])]))

    def _keep(self, node: Node, inputs: tuple[int, ...]) -> None:
        control = tuple(dict.fromkeys(d for c in node.control for d in self._instead.get(c, (c,))))
        if inputs != node.inputs or control != node.control:
            changed = Node(node.op, node.op_def, inputs, node.outputs, control, node.attrs)
            self._instead[node] = (changed,)
            node = changed
        self._nodes.append(node)
        self._makers.update(dict.fromkeys(node.outputs, node))
