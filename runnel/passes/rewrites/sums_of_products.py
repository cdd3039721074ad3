"""Computes a sum over the iterations of a gradient's loop as one product after the loop.

The gradient of weights that a loop uses in every iteration is a sum of products,
``total + matmul(a, b, transpose_a=True)``. Each addition reads and writes as much as the weights,
and nothing else in the loop needs the total. So the loop keeps ``a`` and ``b`` of all iterations,
and one product contracts over iterations and batch at once. The gradient of a bias is likewise one
sum.

This applies only to a loop that pops what another has pushed, because there ``a``, or something of
its size, was kept for every iteration anyway. If ``a`` is the popped value, and the loop needs it
for nothing else, all of it is popped at once after the loop. A loop with ``swap_memory`` stays as
it is: the values that it keeps must not be in the device's memory all at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runnel.graph import dtypes
from runnel.graph.shapes import TensorShape
from runnel.passes.program.program import Node, Program, Replacements, made
from runnel.passes.rewrites.dead_code import without
from runnel.passes.structure.counters import counters_of
from runnel.passes.structure.structured import (
    Loop,
    add_invariants,
    structure_of,
    structured_node,
)

_RESOURCE, _FLOAT = dtypes.resource, dtypes.float32


def sum_after_loops(program: Program) -> Program:
    """``program`` with sums of products moved out of the loops directly inside it."""
    if not any(isinstance(structure_of(node), Loop) for node in program.nodes):
        return program
    nodes: list[Node] = []
    replaced = Replacements()
    for original in program.nodes:
        node, found = replaced.applied(original), structure_of(original)
        new = None
        if isinstance(found, Loop) and not found.swap_memory:
            new = _Sums(program, node, found).run()
        if new is None:
            nodes.append(node)
            continue
        loop = next(one for one in new if structure_of(one) is not None)
        loop.control = node.control
        replaced.nodes[original] = loop
        nodes += new
    return replaced.program(program, nodes)


class _Sums:
    """The sums of one loop."""

    def __init__(self, program: Program, node: Node, loop: Loop) -> None:
        self._program = program
        self._value = program.new_value
        self._node = node
        self._loop = loop
        self._before: list[Node] = []
        self._after: list[Node] = []
        self._body: list[Node] = []
        self._kept: dict[int, tuple[int, int]] = {}
        """The array (its handle and flow) that keeps each value of the body."""
        self._new_inputs: list[int] = []
        self._joined: dict[int, int] = {}
        self._popped_after: dict[int, Node] = {}

    def run(self) -> list[Node] | None:
        """The nodes in place of the loop; None where there is no such sum."""
        counted = self._counted()
        if counted is None:
            return None
        self._count, self._index = counted
        loop = self._loop
        producers = loop.body.producers()
        users: dict[int, int] = {}
        for node in (*loop.body.nodes, *loop.condition.nodes):
            for value in node.inputs:
                users[value] = users.get(value, 0) + 1
        for value in (*loop.body.fetches, *loop.condition.fetches):
            users[value] = users.get(value, 0) + 1
        fetches = list(loop.body.fetches)
        outputs = list(self._node.outputs)
        removed: set[Node] = set()
        pops = {n.outputs[0] for n in loop.body.nodes if n.op_def.name == "StackPopV2"}
        self._popped_after = self._pops_of_one_product(users)
        for position, variable in enumerate(loop.variables):
            addition = producers.get(fetches[position])
            term = self._term(addition, variable, producers)
            if term is None or users[variable] != 1 or users[fetches[position]] != 1:
                continue
            assert addition is not None
            if term.op_def.name == "MatMul":
                if pops.isdisjoint(term.inputs) or users[term.outputs[0]] != 1:
                    continue
            elif not all(value in self._kept for value in term.inputs):
                continue  # a bias alone is summed where it is
            if not all(self._is_matrix(value) for value in term.inputs):
                continue
            total = self._total(term)
            first = self._node.inputs[position]
            for place, exit_position in enumerate(loop.exits):
                if exit_position == position:
                    self._after.append(
                        self._make(
                            "AddV2", (first, total), (outputs[place],), {"T": addition.dtype}
                        )
                    )
            fetches[position] = variable
            removed.update({addition, term})
        if not removed:
            return None
        removed.update(self._popped_after[v] for v in self._joined if v in self._popped_after)
        return self._rebuilt(fetches, removed)

    def _counted(self) -> tuple[int, int] | None:
        """How many iterations there are, and the place of each from the end, as values."""
        loop = self._loop
        counters = counters_of(loop)
        if not counters.exact or len(counters.bounds) != 1:
            return None
        (counter,) = counters.bounds
        limit = loop.condition.producers().get(counter.limit)
        zero = limit is not None and limit.op_def.name == "Const" and limit.attrs["value"] == 0
        if counter.relation != "Greater" or counter.step != -1 or not zero:
            return None
        if self._program.infos[loop.variables[counter.variable]].dtype is not dtypes.int32:
            return None
        # The value at the end of the iteration counts down to 0.
        return self._node.inputs[counter.variable], loop.body.fetches[counter.variable]

    def _pops_of_one_product(self, users: dict[int, int]) -> dict[int, Node]:
        """Pops of a value that is used once, from a stack that the loop does nothing else with."""
        loop = self._loop
        found = {}
        for node in loop.body.nodes:
            if node.op_def.name == "StackPopV2" and not node.control:
                (value,), (handle,) = node.outputs, node.inputs
                alone = users.get(value) == 1 and users[handle] == 1
                if alone and handle in loop.invariants and value not in loop.body.fetches:
                    found[value] = node
        return found

    @staticmethod
    def _term(addition: Node | None, variable: int, producers: dict[int, Node]) -> Node | None:
        """What is added to ``variable``, if it is a product or the gradient of a bias."""
        if addition is None or addition.op_def.name not in ("AddV2", "Add"):
            return None
        one, other = addition.inputs
        if other == variable:
            one, other = other, one
        term = producers.get(other)
        if one != variable or term is None or other == variable:
            return None
        kind, attrs = term.op_def.name, term.attrs
        if kind == "MatMul" and attrs["transpose_a"] and not attrs["transpose_b"]:
            return term
        if kind == "BiasAddGrad" and attrs.get("data_format", b"NHWC") in (b"NHWC", "NHWC"):
            return term
        return None

    def _is_matrix(self, value: int) -> bool:
        dims = self._program.infos[value].dims
        return dims is not None and len(dims) == 2 and dims[1] is not None

    # Building -------------------------------------------------------------------------------

    def _make(self, kind: str, inputs: tuple[int, ...], outputs: Any, attrs: Any) -> Node:
        return made(kind, self._node.op, inputs, outputs, attrs)

    def _keep(self, value: int) -> tuple[int, int]:
        """The array in which the body keeps ``value`` of every iteration."""
        found = self._kept.get(value)
        if found is not None:
            return found
        info = self._program.infos[value]
        handle, flow = self._value(_RESOURCE, (2,)), self._value(_FLOAT, ())
        shape = TensorShape(info.dims)
        attrs = {"dtype": info.dtype, "element_shape": shape, "identical_element_shapes": True}
        self._before.append(self._make("TensorArrayV3", (self._count,), (handle, flow), attrs))
        self._new_inputs += [handle, flow]
        written = self._value(_FLOAT, ())
        inputs = (handle, self._index, value, flow)
        self._body.append(self._make("TensorArrayWriteV3", inputs, (written,), {"T": info.dtype}))
        self._kept[value] = handle, flow
        return handle, flow

    def _all(self, value: int) -> int:
        """``value`` of every iteration, joined along the batch."""
        if value not in self._joined:
            info = self._program.infos[value]
            assert info.dims is not None
            columns = info.dims[1:]
            joined = self._value(info.dtype, (None, *columns))
            self._joined[value] = joined
            if (pop := self._popped_after.get(value)) is not None:
                place = len(self._loop.variables) + self._loop.invariants.index(pop.inputs[0])
                outside = self._node.inputs[place]
                attrs = {"elem_type": info.dtype, "element_shape_except0": TensorShape(columns)}
                inputs = outside, self._count
                self._after.append(self._make("_StackPopJoined", inputs, (joined,), attrs))
                return joined
            outputs = joined, self._value(dtypes.int64, (None,))
            attrs = {"dtype": info.dtype, "element_shape_except0": TensorShape(columns)}
            kept = self._keep(value)
            self._after.append(self._make("TensorArrayConcatV3", kept, outputs, attrs))
        return self._joined[value]

    def _total(self, term: Node) -> int:
        inputs = tuple([self._all(value) for value in term.inputs])
        info = self._program.infos[term.outputs[0]]
        total = self._value(info.dtype, info.dims)
        self._after.append(Node(term.op, term.op_def, inputs, (total,), (), term.attrs))
        return total

    def _rebuilt(self, fetches: list[int], removed: set[Node]) -> list[Node]:
        loop, node, program = self._loop, self._node, self._program
        nodes = [*without(loop.body.nodes, removed), *self._body]
        body = replace(loop.body, nodes=nodes, fetches=tuple(fetches))
        gone = {one.outputs[0] for one in self._after}
        kept = [i for i, value in enumerate(node.outputs) if value not in gone]
        structure = replace(loop, body=body, exits=tuple(loop.exits[i] for i in kept))
        outputs = tuple(node.outputs[i] for i in kept)
        new = structured_node(node.op, structure, node.inputs, outputs, program)
        add_invariants(program, new, self._new_inputs, nodes)
        for after in self._after:
            # No value says that what was kept is there: the loop may wait for another task.
            after.control = (new,)
        return [*self._before, new, *self._after]
