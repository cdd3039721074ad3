"""The interpreted tier of loops and conditionals: writes Python for each, around kernel calls.

A loop of a step becomes a Python ``while``, a conditional an ``if``. Each value is a local variable
and each node a line, so an error is the error of the node whose line raised it. Kernels are bound
to NumPy, the values of variables pass from one line to the next, and random streams move on, as in
``runtime.interpret.code``. Where something cannot compile, a line stands for each stretch between
(``runnel.runtime.interpret.stretch``).

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

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph import errors
from runnel.memory import keep_some_freed_memory
from runnel.passes.program.program import Node, ValueInfo
from runnel.passes.structure.structured import (
    Conditional,
    Loop,
    nested_nodes,
    structure_of,
    touched_by,
)
from runnel.runtime.interpret.function_writer import FunctionWriter
from runnel.runtime.interpret.program_code import ProgramWriter
from runnel.runtime.interpret.scalar_code import is_number
from runnel.runtime.state.step_context import StepContext

if TYPE_CHECKING:
    from runnel.runtime.interpret.stretch import Stretches


_KEEPING = frozenset({"StackPushV2", "TensorArrayWriteV3"})


class StructuredCall:
    """A structured node, as a function of a context, its inputs, variables and random streams."""

    __slots__ = ("node", "infos", "device", "stretches", "fixed", "_function", "_observed")

    def __init__(
        self,
        node: Node,
        infos: list[ValueInfo],
        device: str,
        stretches: Stretches | None = None,
        fixed: Collection[int] | None = None,
    ) -> None:
        """``fixed`` are the inputs that are the same whenever this runs in a step (all if None)."""
        self.node = node
        self.infos = infos
        self.device = device
        self.stretches = stretches
        self.fixed = set(node.inputs) if fixed is None else fixed
        self._function: Callable[..., Any] | None = None
        self._observed: Callable[..., Any] | None = None

    def __call__(self, context: StepContext, *args: Any) -> Any:
        return self.function(context.observer is not None)(context, *args)

    def function(self, observed: bool) -> Callable[..., Any]:
        """The Python function; one that is observed tells the step's observer of each operation."""
        if observed:
            if self._observed is None:
                self._observed = self._write(True)
            return self._observed
        if self._function is None:
            self._function = self._write(False)
        return self._function

    def _write(self, observed: bool) -> Callable[..., Any]:
        if any(node.op_def.name in _KEEPING for node in nested_nodes([self.node])):
            # Memory for all iterations, a little each, which a step would map anew page by page.
            keep_some_freed_memory()
        return _Writer(self, observed).function()


class _Writer:
    """Writes the function of one structured node."""

    def __init__(self, call: StructuredCall, observed: bool) -> None:
        node, infos = call.node, call.infos
        self._call = call
        self._node, self._infos, self._fixed = node, infos, call.fixed
        self._stretches = call.stretches
        self._observed = observed
        self._out = FunctionWriter(node, infos)
        self._line = self._out.line
        touched = touched_by(node)
        self._state = {variable: f"s{i}" for i, variable in enumerate(touched.variables)}
        self._streams = {op: (f"r{i}", f"d{i}") for i, op in enumerate(touched.random)}
        self._programs = ProgramWriter(
            *(self._out, infos, call.device, observed, call.stretches),
            *(self._state, self._streams, self._nested),
        )

    def _nested(self, node: Node, fixed: Collection[int]) -> Callable[..., Any]:
        inner = StructuredCall(node, self._infos, self._call.device, self._stretches, fixed)
        return inner.function(self._observed)

    def function(self) -> Callable[..., Any]:
        node = self._node
        arguments = [f"a{i}" for i in range(len(node.inputs))]
        parameters = ["context", *arguments, *self._state.values()]
        parameters += [stream for stream, _ in self._streams.values()]
        for _, drawn in self._streams.values():
            self._line(f"{drawn} = 0")
        structure = structure_of(node)
        if isinstance(structure, Loop):
            results = self._write_loop(structure, arguments)
        else:
            assert isinstance(structure, Conditional)
            results = self._write_conditional(structure, arguments)
        results = [
            *(self._state[variable] for variable in touched_by(node).writes),
            *results,
            *(drawn for _, drawn in self._streams.values()),
        ]
        return self._out.function(parameters, results)

    # Loops ----------------------------------------------------------------------------------

    def _write_loop(self, loop: Loop, arguments: list[str]) -> list[str]:
        count = len(loop.variables)
        variables = [f"v{value}" for value in loop.variables]
        for value, name, argument in zip(loop.variables, variables, arguments, strict=False):
            number = is_number(self._infos[value])
            self._line(f"{name} = {argument}[()]" if number else f"{name} = {argument}")
        invariants = self._parameters(loop.invariants, arguments[count:])
        fixed = self._fixed_inside(loop.invariants, self._node.inputs[count:])
        inside = [*variables, *invariants]
        if self._stretches is not None:
            constant = dict(zip(loop.invariants, invariants, strict=True))
            arrays = {v: name for v, name in constant.items() if self._infos[v].dims != ()}
            self._programs.place(loop.programs, arrays, fixed, touched_by(self._node).writes)
        self._line("deadline = context.deadline")
        self._out.begin("while True:")
        predicate, *extras = self._programs.write(loop.condition, inside, fixed)
        self._test(predicate, loop.condition.fetches[0])
        self._line(f"if not {predicate}: break", self._node)
        following = self._programs.write(loop.body, [*inside, *extras], fixed, fetch_numpy=False)
        self._write_moves(loop, variables, following, fixed)
        self._out.look(self._node)
        self._out.end()
        # Also those that nobody takes: when they are there, nothing is in use any more.
        for name, value in zip(variables, loop.variables, strict=True):
            if name in self._programs.maybe_jax:
                self._programs.make_numpy(name, value)
        return [variables[position] for position in loop.exits]

    def _write_moves(
        self, loop: Loop, variables: list[str], following: list[str], fixed: Collection[int]
    ) -> None:
        """Gives the variables their next values, as arrays of NumPy where nodes use them."""
        maybe_jax = self._programs.maybe_jax
        if self._stretches is not None:
            on_host = self._programs.used_by_nodes(loop.condition, fixed)
            on_host |= self._programs.used_by_nodes(loop.body, fixed)
            on_host.add(loop.condition.fetches[0])
            elsewhere = {
                name
                for name, value in zip(variables, loop.variables, strict=True)
                if value not in on_host
            }
            for value, name, new in zip(loop.variables, variables, following, strict=True):
                if value in on_host and name != new and new in maybe_jax | elsewhere:
                    self._programs.make_numpy(new, value)
            maybe_jax |= elsewhere
        self._out.move(variables, following)

    def _fixed_inside(self, values: Sequence[int], inputs: Sequence[int]) -> set[int]:
        """What is fixed of the values that the programs inside are fed."""
        given = zip(values, inputs, strict=True)
        return {value for value, taken in given if taken in self._fixed}

    def _test(self, predicate: str, value: int) -> None:
        if self._infos[value].dims != ():
            check = self._out.bind("k", _require_scalar)
            self._line(f"{check}({predicate})", self._node, [predicate])

    # Conditionals ---------------------------------------------------------------------------

    def _write_conditional(self, conditional: Conditional, arguments: list[str]) -> list[str]:
        inside = self._parameters(conditional.parameters, arguments[1:])
        fixed = self._fixed_inside(conditional.parameters, self._node.inputs[1:])
        results = [f"o{i}" for i in range(len(self._node.outputs))]
        predicate = arguments[0]
        self._test(predicate, self._node.inputs[0])
        for branch, program in (
            (f"if {predicate}:", conditional.when_true),
            ("else:", conditional.when_false),
        ):
            self._out.begin(branch)
            found = self._programs.write(program, inside, fixed)
            for name, value in zip(results, found, strict=True):
                self._line(f"{name} = {value}")
            self._line("pass")
            self._out.end()
        return results

    def _parameters(self, values: Sequence[int], arguments: Sequence[str]) -> list[str]:
        """Names for ``arguments`` inside; single numbers become NumPy's scalars.

        What only the branch that is not taken uses may be None.
        """
        for value, argument in zip(values, arguments, strict=True):
            if is_number(self._infos[value]):
                self._line(f"if {argument} is not None: {argument} = {argument}[()]")
        return list(arguments)


def _require_scalar(predicate: Any) -> None:
    if np.ndim(predicate):
        raise errors.InvalidArgumentError(
            None, None, f"pred must be a scalar, but has shape {np.shape(predicate)}"
        )
