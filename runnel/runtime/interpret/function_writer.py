"""Writes Python functions for a part of a step: a line for a node, errors that name it.

This is the one writer of interpreted Python. Its users know in which order nodes run, and where
state is: ``runtime.interpret.written_code`` for segments, ``runtime.interpret.structured_code`` for
loops and conditionals that were raised, ``runtime.dynamic.loop_code`` for loops in regions.

A value is a local variable. Everything else that a line needs (kernels, constants) is bound to
names around the function, which are as quick to reach as a local. An error that a line raises
becomes the error of the line's node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.passes.program.program import Node, ValueInfo
from runnel.runtime.interpret.interpreter import as_op_error
from runnel.runtime.interpret.scalar_code import expression, is_number
from runnel.runtime.state.cell import as_numpy
from runnel.runtime.state.step_context import now


class FunctionWriter:
    """Lines of a function, as they are written."""

    def __init__(self, whole: Node, infos: list[ValueInfo]) -> None:
        """``whole`` is the node that an error names if no line's node has raised it."""
        self._whole = whole
        self._infos = infos
        self._lines: list[str] = []
        self._node_at: dict[int, tuple[Node, list[str]]] = {}
        self.bound: dict[str, Any] = {}
        """What names stand for that are the same in every call."""
        self._indent = 2

    def line(self, text: str, node: Node | None = None, arguments: Sequence[str] = ()) -> None:
        """Adds a line; an error in it names ``node`` and the ``arguments`` that it took."""
        self._lines.append(f"{'    ' * self._indent}{text}")
        if node is not None:
            self._node_at[len(self._lines)] = (node, list(arguments))

    def begin(self, text: str) -> None:
        """Adds a line that begins a block."""
        self.line(text)
        self._indent += 1

    def end(self) -> None:
        """Ends the block that was begun last."""
        self._indent -= 1

    def bind(self, prefix: str, value: Any) -> str:
        """A name for ``value``."""
        name = f"{prefix}{len(self.bound)}"
        self.bound[name] = value
        return name

    def bind_as(self, name: str, value: Any) -> str:
        """``value`` under a name of its own, which is the same wherever it is used."""
        self.bound[name] = value
        return name

    # Nodes ----------------------------------------------------------------------------------

    def constant(self, node: Node) -> str:
        """A name for the value of a ``Const``."""
        value = node.attrs["value"]
        return self.bind("c", value[()] if is_number(self._infos[node.outputs[0]]) else value)

    def computed(
        self, node: Node, arguments: Sequence[str], kernel: Callable[[], Callable[..., Any]]
    ) -> str:
        """What ``node`` computes of ``arguments``: an expression of numbers or a kernel's call."""
        text = self.expression(node, arguments)
        return text or f"{self.bind('k', kernel())}({', '.join(arguments)})"

    def expression(self, node: Node, arguments: Sequence[str]) -> str | None:
        """What ``node`` computes of ``arguments``, if these are single numbers."""
        return expression(node, arguments, [self._infos[value] for value in node.inputs])

    def as_numpy(self, name: str, value: int) -> str:
        """An expression for ``name``, which may be an array of JAX, as NumPy has it."""
        if is_number(self._infos[value]):
            return f"{self.bind_as('as_number', _as_number)}({name})"
        return f"{self.bind_as('as_array', as_numpy)}({name})"

    def move(self, names: Sequence[str], following: Sequence[str]) -> None:
        """Gives the variables of a loop their next values, all at once."""
        moves = [(a, b) for a, b in zip(names, following, strict=True) if a != b]
        if moves:
            self.line(f"{', '.join(a for a, _ in moves)} = {', '.join(b for _, b in moves)}")

    def look(self, node: Node) -> None:
        """Looks whether the step has to stop, in a loop; ``context`` and ``deadline`` are there."""
        self.bind_as("now", now)
        self.line("if context.cancelled or (deadline is not None and now() > deadline):")
        self.line(f"    context.require_time({self.bind('n', node)})", node)

    # The function ---------------------------------------------------------------------------

    def function(self, parameters: Sequence[str], results: Sequence[str]) -> Callable[..., Any]:
        """The function of the lines so far; it returns one result, or a tuple."""
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
        names = {"explain": None, **self.bound}
        lines = [
            f"def make({', '.join(names)}):",
            f"    def run({', '.join(parameters)}):",
            "        try:",
            *(f"    {line}" for line in self._lines),
            "            pass",
            "        except Exception as error:",
            "            raise explain(error) from error",
            f"        return {returned}",
            "    return run",
        ]
        space: dict[str, Any] = {}
        code = compile("\n".join(lines), f"<{self._whole.op.name}>", "exec")
        exec(code, space)  # noqa: S102 (written above)
        first = 3  # lines before those inside the function's try
        located = {number + first: found for number, found in self._node_at.items()}
        names["explain"] = _Explanation(located, self._whole)
        return space["make"](**names)


def _as_number(value: Any) -> Any:
    """A single value of either tier as a scalar of NumPy; None where a branch gave none."""
    return None if value is None else as_numpy(value)[()]


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
