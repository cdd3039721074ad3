"""Python lines for the nodes of a program, as ``runtime.interpret.structured_code`` writes them.

Values are locals, also those of variables and random streams. Kernels are bound to NumPy. A stretch
(``runtime.interpret.stretch``) is one line. Its result may be an array of JAX: other stretches take
it as it is, and everything else takes it as an array of NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.ops.sampling.philox import PhiloxStream
from runnel.passes.program.kernel_call import interpreted
from runnel.passes.program.program import Node, Program, ValueInfo
from runnel.passes.program.state_access import StateAccess, requires_shape
from runnel.passes.structure.structured import structure_of, touched_by
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.function_writer import FunctionWriter
from runnel.runtime.interpret.interpreter import missing_variable
from runnel.runtime.interpret.spent_arrays import SpentArrays
from runnel.runtime.state.cell import as_numpy

if TYPE_CHECKING:
    from runnel.runtime.interpret.stretch import Stretch, Stretches

WriteNested = Callable[[Node, Collection[int]], Callable[..., Any]]
"""Gives the function of a structured node, some inputs of which are fixed."""


class ProgramWriter:
    """Writes programs into a function in which variables and random streams have names."""

    def __init__(
        self,
        out: FunctionWriter,
        infos: list[ValueInfo],
        device: str,
        observed: bool,
        stretches: Stretches | None,
        state: dict[Operation, str],
        streams: dict[Operation, tuple[str, str]],
        write_nested: WriteNested,
    ) -> None:
        """``streams`` names for each random op its stream and how far that has moved."""
        self._out = out
        self._line, self._bind = out.line, out.bind
        self._infos = infos
        self._device = device
        self._observed = observed
        self._stretches = stretches
        self._state = state
        self._streams = streams
        self._write_nested_function = write_nested
        self._names: dict[int, str] = {}
        self._fixed: Collection[int] = ()
        self._spent = SpentArrays(infos)
        self._last: Collection[str] = ()
        """Names that the node being written is the last to use."""
        self._placed: dict[str, str] = {}
        """The device name of each value that was placed there."""
        self.maybe_jax: set[str] = set()
        """Names of values that may be arrays of JAX."""

    # Programs -------------------------------------------------------------------------------

    def write(
        self,
        program: Program,
        arguments: Sequence[str],
        fixed: Collection[int] = (),
        fetch_numpy: bool = True,
    ) -> list[str]:
        """Lines that compute the fetches of ``program``; returns their names.

        ``fixed`` are the values that it is fed for which a stretch may be compiled. Unless
        ``fetch_numpy``, fetches may be arrays of JAX.
        """
        names = self._names = dict(zip(program.feeds.values(), arguments, strict=True))
        self._spent = SpentArrays(self._infos)
        self._fixed = fixed
        access = StateAccess(program)
        parts = self._parts(program, access, fixed)
        uses = _last_uses(program, parts, access)
        on_host = _used_by_nodes(parts)
        if fetch_numpy:
            on_host.update(program.fetches)
        for index, part in enumerate(parts):
            if not isinstance(part, Node):
                self._write_stretch(part, on_host)
            elif part.op_def.variable:
                continue
            else:
                self._last = {
                    names[value]
                    for value in part.inputs
                    if uses.get(value) == index and self._is_large(value, names)
                }
                self._write_node(part, access)
            spent = [
                names[value]
                for value in dict.fromkeys((*part.inputs, *part.outputs))
                if uses.get(value, index) == index and self._is_large(value, names)
            ]
            if spent:
                self._line(f"{' = '.join(spent)} = None")
        return ["None" if value is None else self._names[value] for value in program.fetches]

    def used_by_nodes(self, program: Program, fixed: Collection[int]) -> set[int]:
        """The values that something outside of stretches takes."""
        return _used_by_nodes(self._parts(program, StateAccess(program), fixed))

    def _parts(
        self, program: Program, access: StateAccess, fixed: Collection[int]
    ) -> Sequence[Node | Stretch]:
        if self._stretches is None:
            return program.nodes
        return self._stretches.parts(program, access, fixed)

    def make_numpy(self, name: str, value: int) -> None:
        """Makes the value of ``name``, which may be an array of JAX, one of NumPy."""
        self._line(f"{name} = {self._out.as_numpy(name, value)}")
        self.maybe_jax.discard(name)

    def place(
        self,
        programs: Sequence[Program],
        invariants: dict[int, str],
        fixed: Collection[int],
        written: Collection[Operation],
    ) -> None:
        """Places what the stretches of a loop take in every iteration: once, before the loop."""
        for program in programs:
            for part in self._parts(program, StateAccess(program), fixed):
                if isinstance(part, Node):
                    continue
                taken = [invariants[v] for v in part.inputs if v in invariants]
                taken += [self._state[v] for v, _ in part.reads if v not in written]
                for name in taken:
                    if name not in self._placed:
                        self._placed[name] = f"p{name}"
                        self._line(f"p{name} = {self._bind('t', part.placed)}({name})")

    def _is_large(self, value: int, names: dict[int, str]) -> bool:
        """True for a local of this program that may hold an array worth giving up early."""
        return names.get(value) == f"w{value}" and self._infos[value].dims != ()

    # Stretches ------------------------------------------------------------------------------

    def _write_stretch(self, stretch: Stretch, on_host: set[int]) -> None:
        node = stretch.nodes[-1]
        self._spent.give([self._names[value] for value in stretch.inputs])
        for variable, needs in stretch.reads:
            if needs is not None:
                self._require(variable, needs)
        streams = [self._streams[op] for op in stretch.random]
        given = [self._names[value] for value in stretch.inputs]
        given += [self._state[variable] for variable, _ in stretch.reads]
        given += [stream for stream, _ in streams]
        given = [self._placed.get(name, name) for name in given]
        counts = [f"count{i}" for i in range(len(streams))]
        written = [self._state[variable] for variable in stretch.writes]
        targets = [*(f"w{value}" for value in stretch.outputs), *written, *counts]
        assigned = f"{', '.join(targets)}, = " if targets else ""
        call = self._bind("t", stretch.run)
        self._line(f"{assigned}{call}([{', '.join(given)}], context)", node)
        for value in stretch.outputs:
            name = self._names[value] = f"w{value}"
            if value in on_host:
                self.make_numpy(name, value)
            else:
                self.maybe_jax.add(name)
        self._out.bind_as("as_array", as_numpy)
        for name in written:
            self._line(f"{name} = as_array({name})")
        self._skip(streams, counts)

    def _skip(self, streams: Sequence[tuple[str, str]], counts: Sequence[str]) -> None:
        for (stream, drawn), count in zip(streams, counts, strict=True):
            skip = self._out.bind_as("skip", _skip)
            self._line(f"{stream} = {skip}({stream}, int({count}))")
            self._line(f"{drawn} += int({count})")

    # Nodes ----------------------------------------------------------------------------------

    def _write_node(self, node: Node, access: StateAccess) -> None:
        names, op_def = self._names, node.op_def
        if op_def.name == "Const":
            names[node.outputs[0]] = self._out.constant(node)
            return
        if op_def.name == "Identity" and node.inputs[0] in access.handles:
            self._write_read(node, access.variable_of[node.inputs[0]])
            return
        if op_def.name == "Identity" and node.inputs[0] in names:
            names[node.outputs[0]] = names[node.inputs[0]]
            return
        arguments = self._arguments(node, access)
        if structure_of(node) is not None:
            self._spent.give(arguments)
            self._write_nested(node, arguments)
            return
        outputs = [f"w{value}" for value in node.outputs if not self._is_left(value, access)]
        written = [self._state[variable] for variable in access.writes(node)]
        targets = [*written, *outputs]
        if op_def.random is not None:
            self._write_draw(node, arguments, targets)
        else:
            text = self._out.expression(node, arguments) or self._computed(node, access, arguments)
            self._call(node, targets, text, arguments)
        for value in node.outputs:
            if self._is_left(value, access):
                self._line(f"w{value} = {self._state[access.variable_of[value]]}")
            names[value] = f"w{value}"

    def _computed(self, node: Node, access: StateAccess, arguments: list[str]) -> str:
        """A kernel's call; what observers are told of, and variables hold, stays as it is."""
        call, given = self._kernel(node, access), arguments
        if self._observed or access.writes(node):
            self._spent.give(arguments)
        else:
            call, given = self._spent.in_place(node, call, arguments, self._last)
        return f"{self._bind('k', call)}({', '.join(given)})"

    @staticmethod
    def _is_left(value: int, access: StateAccess) -> bool:
        """True for the value that an update left in its variable."""
        return value in access.variable_of

    def _call(self, node: Node, targets: list[str], call: str, arguments: Sequence[str]) -> None:
        if self._observed:
            self._line(f"start = {self._out.bind_as('clock', time.perf_counter_ns)}()")
        assigned = f"{', '.join(targets)} = " if targets else ""
        self._line(f"{assigned}{call}", node, arguments)
        if self._observed:
            name = self._bind("n", node)
            outputs = ", ".join(f"{t}" for t in targets)
            self._line(f"context.observer.operation({name}, start, clock(), [{outputs}])")

    def _write_read(self, node: Node, variable: Operation) -> None:
        self._require(variable, node)
        name = self._names[node.outputs[0]] = f"w{node.outputs[0]}"
        self._line(f"{name} = {self._state[variable]}")

    def _require(self, variable: Operation, node: Node) -> None:
        """A line that raises an error when ``variable`` has no value, which ``node`` needs."""
        missing = self._bind("k", partial(_raise_missing, variable, node))
        self._line(f"if {self._state[variable]} is None: {missing}()", node)

    def _write_draw(self, node: Node, arguments: list[str], targets: list[str]) -> None:
        self._spent.give(arguments)
        stream, drawn = self._streams[node.op]
        call = self._bind("k", interpreted(node, self._device))
        inputs = ", ".join([*arguments, stream])
        self._call(node, [*targets, "count"], f"{call}({inputs})", arguments)
        self._skip([(stream, drawn)], ["count"])

    def _write_nested(self, node: Node, arguments: list[str]) -> None:
        touched = touched_by(node)
        fixed = {v for v in node.inputs if v in self._fixed or self._names[v].startswith("c")}
        call = self._bind("k", self._write_nested_function(node, fixed))
        streams = [self._streams[op] for op in touched.random]
        given = ["context", *arguments, *(self._state[v] for v in touched.variables)]
        given += [stream for stream, _ in streams]
        counts = [f"count{i}" for i in range(len(streams))]
        targets = [self._state[v] for v in touched.writes]
        targets += [f"w{value}" for value in node.outputs]
        targets += counts
        assigned = f"{', '.join(targets)} = " if targets else ""
        self._line(f"{assigned}{call}({', '.join(given)})", node, arguments)
        self._skip(streams, counts)
        for value in node.outputs:
            self._names[value] = f"w{value}"

    def _arguments(self, node: Node, access: StateAccess) -> list[str]:
        found = []
        for position, value in enumerate(node.inputs):
            if position in node.op_def.overwrites:
                found.append("None")
            elif position in node.op_def.updates or value in access.handles:
                variable = access.variable_of[value]
                if not node.op_def.allows_uninitialized:
                    self._require(variable, node)
                found.append(self._state[variable])
            else:
                found.append(self._names[value])
        return found

    def _kernel(self, node: Node, access: StateAccess) -> Callable[..., Any]:
        from runnel.runtime.interpret.code import check_assigned

        call = interpreted(node, self._device)
        if node.op_def.overwrites and requires_shape(node):
            call = check_assigned(call, access.writes(node)[0].attrs["shape"]._dims)
        return verification.verified(call, node, self._infos)


def _last_uses(
    program: Program, parts: Sequence[Node | Stretch], access: StateAccess
) -> dict[int, int]:
    """Where each value is used last; a copy of it is another name for it, a read is not."""
    last: dict[int, int] = {}
    copied: dict[int, int] = {}
    for index, part in enumerate(parts):
        for value in part.inputs:
            last[copied.get(value, value)] = index
        if (
            isinstance(part, Node)
            and part.op_def.name == "Identity"
            and part.inputs[0] not in access.handles
        ):
            copied[part.outputs[0]] = copied.get(part.inputs[0], part.inputs[0])
    forever = len(parts)
    for value in (*program.fetches, *program.feeds.values()):
        last[copied.get(value, value)] = forever
    return last


def _used_by_nodes(parts: Sequence[Node | Stretch]) -> set[int]:
    return {value for part in parts if isinstance(part, Node) for value in part.inputs}


def _skip(words: np.ndarray, count: int) -> np.ndarray:
    """The stream ``count`` counters further."""
    whole = int.from_bytes(words.tobytes(), "little")
    return PhiloxStream(whole & (1 << 64) - 1, whole >> 64).skip(count).words()


def _raise_missing(variable: Operation, node: Node) -> None:
    raise missing_variable(variable, node)
