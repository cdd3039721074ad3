"""The interpreted tier of loops and conditionals: Python written for each, around kernel calls.

A loop of a step becomes a Python ``while``, a conditional an ``if``; each value is a local variable
and each node a line, so that an error is the error of the node whose line raised it. What is inside
is the same as in ``runnel.runtime.code``: kernels bound to NumPy, values of variables passed from
one to the next, random streams that move on.

    def run(watch, a0, a1, s0):           # inputs, then variables, then random streams
        v3 = a0[()]
        while True:
            v6 = v3 < c1
            if not v6: break
            v12 = v3 + c2
            v3 = v12
        return v3                         # new values of variables, outputs, what was drawn
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.graph.registry import INTERPRETED
from runnel.ops.philox import PhiloxStream
from runnel.passes.kernel_call import bind, fail_now, select
from runnel.passes.program import Node, Program, ValueInfo
from runnel.passes.state_access import StateAccess
from runnel.passes.structured import Loop, structure_of, touched_by
from runnel.runtime import verification
from runnel.runtime.interpreter import as_op_error, missing_variable
from runnel.runtime.scalar_code import expression, is_number
from runnel.runtime.step_watch import StepWatch, now


class StructuredCall:
    """A structured node, as a function of a watch, its inputs, variables and random streams."""

    __slots__ = ("_node", "_infos", "_device", "_function", "_observed")

    def __init__(self, node: Node, infos: list[ValueInfo], device: str) -> None:
        self._node = node
        self._infos = infos
        self._device = device
        self._function: Callable[..., Any] | None = None
        self._observed: Callable[..., Any] | None = None

    def __call__(self, watch: StepWatch, *args: Any) -> Any:
        return self.function(watch.observer is not None)(watch, *args)

    def function(self, observed: bool) -> Callable[..., Any]:
        """The Python function; one that is observed tells the watch of each operation."""
        if observed:
            if self._observed is None:
                self._observed = self._write(True)
            return self._observed
        if self._function is None:
            self._function = self._write(False)
        return self._function

    def _write(self, observed: bool) -> Callable[..., Any]:
        return _Writer(self._node, self._infos, self._device, observed).function()


class _Writer:
    """Writes the function of one structured node."""

    def __init__(self, node: Node, infos: list[ValueInfo], device: str, observed: bool) -> None:
        self._node = node
        self._infos = infos
        self._device = device
        self._observed = observed
        self._lines: list[str] = []
        self._node_at: dict[int, tuple[Node, list[str]]] = {}
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._indent = 2
        touched = touched_by(node)
        self._state = {variable: f"s{i}" for i, variable in enumerate(touched.variables)}
        self._streams = {op: (f"r{i}", f"d{i}") for i, op in enumerate(touched.random)}

    # The function ---------------------------------------------------------------------------

    def function(self) -> Callable[..., Any]:
        node = self._node
        arguments = [f"a{i}" for i in range(len(node.inputs))]
        parameters = ["watch", *arguments, *self._state.values()]
        parameters += [stream for stream, _ in self._streams.values()]
        for _, drawn in self._streams.values():
            self._line(f"{drawn} = 0")
        structure = structure_of(node)
        if isinstance(structure, Loop):
            results = self._write_loop(structure, arguments)
        else:
            assert structure is not None
            results = self._write_conditional(structure, arguments)
        results = [
            *(self._state[variable] for variable in touched_by(node).writes),
            *results,
            *(drawn for _, drawn in self._streams.values()),
        ]
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
        lines = [
            f"def run({', '.join(parameters)}):",
            "    try:",
            *self._lines,
            "    except Exception as error:",
            "        raise explain(error) from error",
            f"    return {returned}",
        ]
        return self._compiled(lines)

    def _compiled(self, lines: list[str]) -> Callable[..., Any]:
        name = f"<{self._node.op.name}>"
        outer = [f"def make({', '.join(['explain', 'now', *self._bound])}):"]
        outer += [f"    {line}" for line in lines]
        outer.append("    return run")
        space: dict[str, Any] = {}
        exec(compile("\n".join(outer), name, "exec"), space)  # noqa: S102 (written above)
        first = 4  # where the lines inside the function's try begin
        located = {number + first - 1: found for number, found in self._node_at.items()}
        return space["make"](_Explanation(located, self._node), now, **self._bound)

    def _line(self, text: str, node: Node | None = None, arguments: Sequence[str] = ()) -> None:
        self._lines.append(f"{'    ' * self._indent}{text}")
        if node is not None:
            self._node_at[len(self._lines)] = (node, list(arguments))

    def _bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self._bound)}"
        self._bound[name] = value
        return name

    # Loops ----------------------------------------------------------------------------------

    def _write_loop(self, loop: Loop, arguments: list[str]) -> list[str]:
        count = len(loop.variables)
        variables = [f"v{value}" for value in loop.variables]
        for value, name, argument in zip(loop.variables, variables, arguments, strict=False):
            number = is_number(self._infos[value])
            self._line(f"{name} = {argument}[()]" if number else f"{name} = {argument}")
        invariants = self._parameters(loop.invariants, arguments[count:])
        inside = [*variables, *invariants]
        self._line("store = watch.store")
        self._line("deadline = watch.deadline")
        node = self._bind("n", self._node)
        self._line("while True:")
        self._indent += 1
        predicate, *extras = self._write_program(loop.condition, inside)
        self._test(predicate, loop.condition.fetches[0])
        self._line(f"if not {predicate}: break", self._node)
        following = self._write_program(loop.body, [*inside, *extras])
        moves = [(a, b) for a, b in zip(variables, following, strict=True) if a != b]
        if moves:
            left, right = ", ".join(a for a, _ in moves), ", ".join(b for _, b in moves)
            self._line(f"{left} = {right}")
        self._line("if store.closed or (deadline is not None and now() > deadline):")
        self._line(f"    watch.require_time({node})", self._node)
        self._indent -= 1
        return [variables[position] for position in loop.exits]

    def _test(self, predicate: str, value: int) -> None:
        if self._infos[value].dims != ():
            check = self._bind("k", _require_scalar)
            self._line(f"{check}({predicate})", self._node, [predicate])

    # Conditionals ---------------------------------------------------------------------------

    def _write_conditional(self, conditional: Any, arguments: list[str]) -> list[str]:
        inside = self._parameters(conditional.parameters, arguments[1:])
        results = [f"o{i}" for i in range(len(self._node.outputs))]
        predicate = arguments[0]
        self._test(predicate, self._node.inputs[0])
        for branch, program in (
            (f"if {predicate}:", conditional.when_true),
            ("else:", conditional.when_false),
        ):
            self._line(branch)
            self._indent += 1
            found = self._write_program(program, inside)
            for name, value in zip(results, found, strict=True):
                self._line(f"{name} = {value}")
            self._line("pass")
            self._indent -= 1
        return results

    def _parameters(self, values: Sequence[int], arguments: Sequence[str]) -> list[str]:
        """Names for ``arguments`` inside; single numbers become NumPy's scalars.

        What only the branch that is not taken uses may be None.
        """
        for value, argument in zip(values, arguments, strict=True):
            if is_number(self._infos[value]):
                self._line(f"if {argument} is not None: {argument} = {argument}[()]")
        return list(arguments)

    # Programs -------------------------------------------------------------------------------

    def _write_program(self, program: Program, arguments: Sequence[str]) -> list[str]:
        """Lines that compute the fetches of ``program``; returns their names."""
        names = self._names = dict(zip(program.feeds.values(), arguments, strict=True))
        access = StateAccess(program)
        uses = _last_uses(program, access)
        for index, node in enumerate(program.nodes):
            if node.op_def.variable:
                continue
            self._write_node(node, access)
            spent = [
                names[value]
                for value in dict.fromkeys((*node.inputs, *node.outputs))
                if uses.get(value, index) == index and self._is_large(value, names)
            ]
            if spent:
                self._line(f"{' = '.join(spent)} = None")
        return ["None" if value is None else self._names[value] for value in program.fetches]

    def _is_large(self, value: int, names: dict[int, str]) -> bool:
        """True for a local of this program that may hold an array worth giving up early."""
        return names.get(value) == f"w{value}" and self._infos[value].dims != ()

    def _write_node(self, node: Node, access: StateAccess) -> None:
        names, op_def = self._names, node.op_def
        if op_def.name == "Const":
            value = node.attrs["value"]
            if is_number(self._infos[node.outputs[0]]):
                value = value[()]
            names[node.outputs[0]] = self._bind("c", value)
            return
        if op_def.name == "Identity" and node.inputs[0] in access.handles:
            self._write_read(node, access.variable_of[node.inputs[0]])
            return
        if op_def.name == "Identity" and node.inputs[0] in names:
            names[node.outputs[0]] = names[node.inputs[0]]
            return
        arguments = self._arguments(node, access)
        if structure_of(node) is not None:
            self._write_nested(node, arguments)
            return
        outputs = [f"w{value}" for value in node.outputs if not self._is_left(value, access)]
        written = [self._state[variable] for variable in access.writes(node)]
        quick = None
        if not written:
            given = [self._infos[value] for value in node.inputs]
            quick = expression(node, arguments, given)
        targets = [*written, *outputs]
        if op_def.random is not None:
            self._write_draw(node, arguments, targets)
        elif quick is not None:
            self._call(node, targets, quick, arguments)
        else:
            call = self._bind("k", self._kernel(node, access))
            self._call(node, targets, f"{call}({', '.join(arguments)})", arguments)
        for value in node.outputs:
            if self._is_left(value, access):
                self._line(f"w{value} = {self._state[access.variable_of[value]]}")
            names[value] = f"w{value}"

    @staticmethod
    def _is_left(value: int, access: StateAccess) -> bool:
        """True for the value that an update left in its variable."""
        return value in access.variable_of

    def _call(self, node: Node, targets: list[str], call: str, arguments: Sequence[str]) -> None:
        if self._observed:
            self._line("start = clock()")
            self._bound["clock"] = time.perf_counter_ns
        assigned = f"{', '.join(targets)} = " if targets else ""
        self._line(f"{assigned}{call}", node, arguments)
        if self._observed:
            name = self._bind("n", node)
            outputs = ", ".join(f"{t}" for t in targets)
            self._line(f"watch.observer.operation({name}, start, clock(), [{outputs}])")

    def _write_read(self, node: Node, variable: Operation) -> None:
        name = f"w{node.outputs[0]}"
        self._line(f"{name} = {self._state[variable]}")
        missing = self._bind("k", _Missing(variable, node))
        self._line(f"if {name} is None: {missing}()", node)
        self._names[node.outputs[0]] = name

    def _write_draw(self, node: Node, arguments: list[str], targets: list[str]) -> None:
        stream, drawn = self._streams[node.op]
        call = self._bind("k", bind(select(node, self._device, INTERPRETED), node, np, fail_now))
        skip = self._bind("k", _skip)
        inputs = ", ".join([*arguments, stream])
        self._call(node, [*targets, "count"], f"{call}({inputs})", arguments)
        self._line(f"{stream} = {skip}({stream}, count)")
        self._line(f"{drawn} += count")

    def _write_nested(self, node: Node, arguments: list[str]) -> None:
        touched = touched_by(node)
        inner = StructuredCall(node, self._infos, self._device)
        call = self._bind("k", inner.function(self._observed))
        streams = [self._streams[op] for op in touched.random]
        given = ["watch", *arguments, *(self._state[v] for v in touched.variables)]
        given += [stream for stream, _ in streams]
        counts = [f"count{i}" for i in range(len(streams))]
        targets = [self._state[v] for v in touched.writes]
        targets += [f"w{value}" for value in node.outputs]
        targets += counts
        assigned = f"{', '.join(targets)} = " if targets else ""
        self._line(f"{assigned}{call}({', '.join(given)})", node, arguments)
        if streams:
            skip = self._bind("k", _skip)
            for (stream, drawn), count in zip(streams, counts, strict=True):
                self._line(f"{stream} = {skip}({stream}, {count})")
                self._line(f"{drawn} += {count}")
        for value in node.outputs:
            self._names[value] = f"w{value}"

    def _arguments(self, node: Node, access: StateAccess) -> list[str]:
        found = []
        for position, value in enumerate(node.inputs):
            if position in node.op_def.overwrites:
                found.append("None")
            elif position in node.op_def.updates or value in access.handles:
                name = self._state[access.variable_of[value]]
                if not node.op_def.allows_uninitialized:
                    missing = self._bind("k", _Missing(access.variable_of[value], node))
                    self._line(f"if {name} is None: {missing}()", node)
                found.append(name)
            else:
                found.append(self._names[value])
        return found

    def _kernel(self, node: Node, access: StateAccess) -> Callable[..., Any]:
        from runnel.runtime.code import check_assigned

        call = bind(select(node, self._device, INTERPRETED), node, np, check=fail_now)
        if node.op_def.overwrites and node.attrs.get("validate_shape", True):
            call = check_assigned(call, access.writes(node)[0].attrs["shape"]._dims)
        if verification.enabled:
            infos = [self._infos[value] for value in node.outputs]
            declared = [info for info in infos if not info.dtype.is_ref_dtype]
            return verification.verified(call, node, declared)
        return call


def _last_uses(program: Program, access: StateAccess) -> dict[int, int]:
    """Where each value is used last; a copy of it is another name for it, a read is not."""
    last: dict[int, int] = {}
    copied: dict[int, int] = {}
    for index, node in enumerate(program.nodes):
        for value in node.inputs:
            last[copied.get(value, value)] = index
        if node.op_def.name == "Identity" and node.inputs[0] not in access.handles:
            copied[node.outputs[0]] = copied.get(node.inputs[0], node.inputs[0])
    forever = len(program.nodes)
    for value in (*program.fetches, *program.feeds.values()):
        last[copied.get(value, value)] = forever
    return last


def _skip(words: np.ndarray, count: int) -> np.ndarray:
    """The stream ``count`` counters further."""
    whole = int.from_bytes(words.tobytes(), "little")
    return PhiloxStream(whole & (1 << 64) - 1, whole >> 64).skip(count).words()


def _require_scalar(predicate: Any) -> None:
    if np.ndim(predicate):
        raise errors.InvalidArgumentError(
            None, None, f"pred must be a scalar, but has shape {np.shape(predicate)}"
        )


class _Missing:
    """Raises the error for reading a variable that has no value."""

    def __init__(self, variable: Operation, node: Node) -> None:
        self._variable = variable
        self._node = node

    def __call__(self) -> None:
        raise missing_variable(self._variable, self._node)


class _Explanation:
    """Turns an error of a written function into that of the node whose line raised it."""

    def __init__(self, located: dict[int, tuple[Node, list[str]]], whole: Node) -> None:
        self._located = located
        self._whole = whole

    def __call__(self, error: Exception) -> Exception:
        trace = error.__traceback__
        if trace is None:
            return error
        node, names = self._located.get(trace.tb_lineno, (self._whole, []))
        present = trace.tb_frame.f_locals
        return as_op_error(error, node, [present.get(name) for name in names])
