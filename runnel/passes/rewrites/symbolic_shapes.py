"""Finds unknown sizes that are equal: each unknown size gets a name, a symbol.

If the size of a batch is open, no static shape says that two values have the same one. But an
elementwise operation keeps the shape of its inputs, a product keeps its rows, a loop's variable
keeps its first shape if the body does, and a gradient's loop pops what the loop pushed. Followed
through a whole step, most values of a network turn out to have the rows of the feed.

A symbol names a size in one iteration of the loops around it (its scope). So a value that leaves a
loop, or goes through a stack or a TensorArray, keeps only symbols from outside. Shapes hold if no
operation fails: rows that a ``ConcatV2`` joins are those of its first input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node, Program
from runnel.passes.rewrites.held_values import WRITES, HeldValues, Holder, Scope
from runnel.passes.rewrites.shape_rules import (
    Content,
    PartlyKnown,
    Size,
    Sizes,
    Symbol,
    common,
    content_of,
    shapes_of,
)
from runnel.passes.structure.structured import Conditional, Loop, nested_nodes, structure_of


class SymbolicShapes:
    """The shapes of all values of a step, in sizes and symbols."""

    def __init__(self, program: Program) -> None:
        self._infos = program.infos
        self.holders = HeldValues(program)
        self._sizes: dict[int, Sizes | None] = {}
        self._contents: dict[int, Content] = {}
        self._scopes: dict[Symbol, Scope] = {}
        self._scope: Scope = ()
        self._held: dict[Node, tuple[Sizes | None, Content]] = {}
        """What each push and write has put into its stack or array."""
        for value in program.feeds.values():
            self._set(value, None)
        self._program(program)

    def sizes(self, value: int) -> Sizes | None:
        """The shape of ``value``; None if not even its rank is known."""
        info = self._infos[value]
        found = self._sizes.get(value)
        if found is None:
            if info.dims is None or info.dtype.is_ref_dtype:
                return None
            found = self._sizes[value] = self._fresh(value, info.dims)
        return found

    def content(self, value: int) -> Content:
        """What is known of the integers that ``value`` consists of."""
        return self._contents.get(value)

    def shape_in(self, value: int) -> Sizes | None:
        """The shape that the vector ``value`` holds, if all of it is known."""
        content = self._contents.get(value)
        if not isinstance(content, tuple):
            return None
        found = tuple([size for size in content if size is not None])
        return found if len(found) == len(content) else None

    # Programs ---------------------------------------------------------------------------------

    def _program(self, program: Program) -> None:
        for node in program.nodes:
            structure = structure_of(node)
            if isinstance(structure, Loop):
                self._loop(node, structure)
            elif isinstance(structure, Conditional):
                self._conditional(node, structure)
            elif structure is None:
                self._node(node)
            else:
                self._forget(node)

    def _loop(self, node: Node, loop: Loop) -> None:
        outer, self._scope = self._scope, (*self._scope, node)
        count = len(loop.variables)
        first = node.inputs[:count]
        self._enter(loop.invariants, node.inputs[count:])
        kept = {v: self.sizes(given) for v, given in zip(loop.variables, first, strict=True)}
        contents = {v: self.content(g) for v, g in zip(loop.variables, first, strict=True)}
        while True:
            for inner in nested_nodes([node]):  # what was put there under other assumptions
                self._held.pop(inner, None)
            self._sizes.update(kept)
            for value, content in contents.items():
                self._tell(value, content)
            condition, body = loop.programs
            given = (*loop.variables, *loop.invariants)
            self._enter(condition.feeds.values(), given)
            self._program(condition)
            self._enter(body.feeds.values(), (*given, *condition.fetches[1:]))
            self._program(body)
            stable = True
            for value, following in zip(loop.variables, body.fetches, strict=True):
                agreed = self._agreed(value, kept[value], self.sizes(following))
                if agreed != kept[value]:
                    kept[value], stable = agreed, False
                if contents[value] is not None and contents[value] != self.content(following):
                    contents[value], stable = None, False
            if stable:
                break
        self._scope = outer
        for value, position in zip(node.outputs, loop.exits, strict=True):
            self._set(value, self._outside(kept[loop.variables[position]], outer))
            self._tell(value, contents[loop.variables[position]])

    def _conditional(self, node: Node, conditional: Conditional) -> None:
        for program in conditional.programs:
            self._enter(conditional.parameters, node.inputs[1:])
            self._enter(program.feeds.values(), conditional.parameters)
            self._program(program)
        sides = zip(*(program.fetches for program in conditional.programs), strict=True)
        for value, (one, other) in zip(node.outputs, sides, strict=True):
            known = one is not None and other is not None
            self._set(value, common(self.sizes(one), self.sizes(other)) if known else None)
            self._tell(value, None)

    def _enter(self, inside: Iterable[int], outside: Iterable[int]) -> None:
        for value, given in zip(inside, outside, strict=True):
            if value != given:
                self._sizes[value] = self.sizes(given)
                self._tell(value, self.content(given))

    def _tell(self, value: int, content: Content) -> None:
        if content is None:
            self._contents.pop(value, None)
        else:
            self._contents[value] = content

    # Symbols ----------------------------------------------------------------------------------

    def _fresh(self, value: int, dims: Sequence[Size | None]) -> Sizes:
        """``dims`` with a symbol of ``value`` for each that is not known."""
        found: list[Size] = []
        for axis, size in enumerate(dims):
            if size is None:
                size = Symbol(value, axis)
                self._scopes[size] = self._scope
            found.append(size)
        return tuple(found)

    def _set(self, value: int, sizes: PartlyKnown) -> None:
        """Notes the shape of ``value``; what the static shape knows holds too."""
        static = self._infos[value].dims
        if static is not None and None not in static:
            self._sizes[value] = cast(Sizes, static)
            return
        if sizes is None or (static is not None and len(static) != len(sizes)):
            sizes = static
        elif static is not None:
            sizes = [s if known is None else known for s, known in zip(sizes, static, strict=True)]
        self._sizes[value] = None if sizes is None else self._fresh(value, sizes)

    def _agreed(self, value: int, kept: Sizes | None, following: Sizes | None) -> Sizes | None:
        """The shape of a loop's variable that was ``kept`` so far and is ``following`` next."""
        if kept is None or following is None or len(kept) != len(following):
            return None
        same = [a if a == b else None for a, b in zip(kept, following, strict=True)]
        return self._fresh(value, same)

    def _outside(self, sizes: Sizes | None, scope: Scope) -> PartlyKnown:
        """``sizes`` without the symbols that mean nothing in ``scope``."""
        if sizes is None:
            return None
        return tuple([size if self._is_known_in(size, scope) else None for size in sizes])

    def _is_known_in(self, size: Size | None, scope: Scope) -> bool:
        if not isinstance(size, Symbol):
            return True
        of = self._scopes[size]
        return of == scope[: len(of)]

    # Nodes ------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        infos = self._infos
        for value in node.inputs:
            if infos[value].dtype.is_ref_dtype:
                self._forget(node)  # the shape of a variable may change from read to read
                return
        if len(node.outputs) == 1:
            # Who takes integers that wait for something waits for it too.
            self._tell(node.outputs[0], None if node.control else content_of(self, node))
        if node.op_def.name in WRITES:
            self._put(node)
        for value in node.outputs:
            if not is_fully_defined(infos[value].dims):
                break
        else:  # no rule knows more
            for value in node.outputs:
                self._set(value, None)
            return
        for value, sizes in zip(node.outputs, shapes_of(self, node), strict=True):
            self._set(value, sizes)

    def _forget(self, node: Node) -> None:
        for value in node.outputs:
            self._set(value, None)
            self._tell(value, None)

    # Stacks and arrays ------------------------------------------------------------------------

    def _put(self, node: Node) -> None:
        value = node.inputs[1 if node.op_def.name == "StackPushV2" else 2]
        sizes, content = self.sizes(value), None if node.control else self.content(value)
        if node.op_def.name == "TensorArrayScatterV3":
            sizes, content = (sizes[1:] if sizes else None), None
        self._held[node] = sizes, content

    def element(self, handle: int) -> tuple[PartlyKnown, Content]:
        """The shape and the content of what a stack or an array holds, each time the same."""
        holder = self.holders.of.get(handle)
        return (None, None) if holder is None else self._held_by(holder)

    def _held_by(self, holder: Holder) -> tuple[PartlyKnown, Content]:
        puts = self.holders.touched_by(holder, WRITES)
        if puts is None or len(puts) != 1 or puts[0] not in self._held:
            return None, None
        sizes, content = self._held[puts[0]]
        if len(holder) > 1:
            # What is not written of an array of gradients is zeros like the array's elements.
            source, _ = self._held_by(holder[:-1])
            if source is None or sizes is None or tuple(source) != sizes:
                return None, None
        scope = self.holders.scope[holder]
        if isinstance(content, tuple):
            content = tuple([s if self._is_known_in(s, scope) else None for s in content])
        elif not self._is_known_in(content, scope):
            content = None
        return self._outside(sizes, scope), content
