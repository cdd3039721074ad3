"""The function library of a ``GraphDef``, found and checked before it is used.

A function calls others by an operation of its name, or by an attribute that names it. Before any
work, :meth:`Library.check` measures how large a graph becomes when all its calls are expanded. It
refuses cycles, calls that nest too deep, and functions that call functions until there are more
nodes than memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "RemoteCall"})
CONDITIONALS = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
LOOPS = frozenset({"While", "StatelessWhile"})
SYMBOLIC_GRADIENT = "SymbolicGradient"
FUNCTIONAL = CALLS | CONDITIONALS | LOOPS | {SYMBOLIC_GRADIENT}
"""Operations that are nothing but a use of functions; all have one list of outputs, ``output``."""

MOST_NODES = 500_000
"""As many nodes may come of all calls together."""
MOST_BYTES = 1 << 30
DEEPEST = 64
"""As many calls may be inside one another."""
_PER_EDGE = 6
"""So many nodes at most carry one input or output of a conditional or loop."""
_OF_GRADIENT = 8
"""A function with its gradient has about so many times its nodes."""


def named_functions(node: Any) -> Iterator[str]:
    """The functions that the attributes of a ``NodeDef`` name."""
    for key in sorted(node.attr):
        value = node.attr[key]
        kind = value.WhichOneof("value")
        if kind == "func":
            yield value.func.name
        elif kind == "list":
            for function in value.list.func:
                yield function.name


class Library:
    """The functions of ``graph_def`` by name."""

    def __init__(self, graph_def: Any) -> None:
        self.functions: dict[str, Any] = {}
        for function in graph_def.library.function:
            name = function.signature.name
            if not name:
                raise ValueError("The GraphDef's library has a function without a name.")
            known = self.functions.setdefault(name, function)
            if known is not function and known != function:
                raise ValueError(f"The GraphDef's library has two functions {name!r}.")
        self._measured: dict[str, tuple[int, int, int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.functions

    def uses_functions(self, node: Any) -> bool:
        """Whether ``node`` calls a function, or has one as an attribute."""
        if node.op in FUNCTIONAL or node.op in self.functions:
            return True
        return bool(self.functions) and any(n in self.functions for n in named_functions(node))

    def called(self, node: Any) -> Iterator[str]:
        """The functions of the library that ``node`` uses."""
        if node.op in self.functions:
            yield node.op
        for name in named_functions(node):
            if name in self.functions:
                yield name
            elif node.op in FUNCTIONAL:
                raise ValueError(
                    f"Node {node.name!r} ({node.op}): it calls the function {name!r}, which the "
                    f"GraphDef's library does not have. {self._known()}"
                )

    def _known(self) -> str:
        if not self.functions:
            return "The library is empty."
        shown = sorted(self.functions)[:5]
        more = len(self.functions) - len(shown)
        return f"It has {', '.join(shown)}" + (f" and {more} more." if more > 0 else ".")

    def check(self, nodes: Any) -> None:
        """A ValueError where the calls of ``nodes`` cannot be carried out within bounds."""
        count, size = 0, 0
        for node in nodes:
            added = self._measure_node(node, ())
            count, size = count + added[0], size + added[1]
        if count > MOST_NODES:
            raise ValueError(
                f"With its functions called the GraphDef has about {_readable(count)} nodes; "
                f"{MOST_NODES:,} are the most supported."
            )
        if size > MOST_BYTES:
            raise ValueError(
                f"With its functions called the GraphDef has about {_readable(size)} bytes; "
                f"{MOST_BYTES:,} are the most supported."
            )

    def _measure_node(self, node: Any, path: tuple[str, ...]) -> tuple[int, int, int]:
        """How many nodes and bytes come of ``node``, and how deep its calls nest."""
        if not self.uses_functions(node):
            return (1, 0, 0) if not path else (1, node.ByteSize(), 0)
        outputs = sum(len(v.list.type) for v in node.attr.values())
        count = 12 + _PER_EDGE * (len(node.input) + outputs)
        if node.op in CONDITIONALS:
            for value in node.attr.values():  # one conditional for each branch of a case
                count *= max(1, len(value.list.func))
        size, depth = node.ByteSize(), 0
        for name in self.called(node):
            below = self._measure(name, path)
            count, size, depth = count + below[0], size + below[1], max(depth, below[2])
        if node.op == SYMBOLIC_GRADIENT:
            count, size = count * _OF_GRADIENT, size * _OF_GRADIENT
        return count, size, depth

    def _measure(self, name: str, path: tuple[str, ...]) -> tuple[int, int, int]:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise ValueError(
                f"Functions of the GraphDef's library call each other in a cycle: {cycle}. "
                "Recursion is not supported."
            )
        found = self._measured.get(name)
        if found is None and len(path) < DEEPEST:
            count, size, depth = 4, 0, 0
            inside = (*path, name)
            for node in self.functions[name].node_def:
                added = self._measure_node(node, inside)
                count, size, depth = count + added[0], size + added[1], max(depth, added[2])
            found = self._measured[name] = (count, size, depth + 1)
        if found is None or len(path) + found[2] > DEEPEST:
            first = path[0] if path else name
            raise ValueError(
                f"Functions of the GraphDef's library call each other more than {DEEPEST} deep, "
                f"beginning with {first!r}."
            )
        return found


def _readable(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"10^{len(str(number)) - 1}"
