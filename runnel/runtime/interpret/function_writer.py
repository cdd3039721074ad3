"""Python functions written for a part of a step: a line for a node, errors that name it.

A value is a local variable. What a line needs beside these (kernels, constants) is bound to names
around the function, so that it is as quick to reach as a local. An error that a line raises becomes
the error of the node that the line stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.passes.program.program import Node
from runnel.runtime.interpret.interpreter import as_op_error


class FunctionWriter:
    """Lines of a function, as they are written."""

    def __init__(self, whole: Node) -> None:
        """``whole`` is the node to which an error belongs that no line's node has raised."""
        self._whole = whole
        self._lines: list[str] = []
        self._node_at: dict[int, tuple[Node, list[str]]] = {}
        self.bound: dict[str, Any] = {}
        """What names stand for that are the same in every call."""
        self._indent = 2

    def line(self, text: str, node: Node | None = None, arguments: Sequence[str] = ()) -> None:
        """Adds a line; ``node`` is what an error in it is about, ``arguments`` what it took."""
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
