"""Splits products in a loop with weights from outside, so that an iteration computes less.

* ``matmul(concat([x_t, h], 1), w)``, where ``x_t`` is read from a TensorArray that was filled
  before the loop, becomes ``matmul(x_t, w_x) + matmul(h, w_h)``. The first is computed for all
  iterations at once, before the loop (unless the loop has ``swap_memory``, since all results would
  be kept).
* If ``matmul(a, w, transpose_b=True)`` is split into parts, only the used ones are computed: the
  gradient of ``h``, but not that of an input that nobody asked for.
* A constant part of the weights is cut out once, before the loop: XLA takes a slice to be free and
  leaves it in the loop, where each iteration would copy it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.shapes import TensorShape
from runnel.passes.program.program import Node, Program, made
from runnel.passes.structure.structured import Loop, add_invariants, structure_of


def split_products(program: Program) -> Program:
    """``program`` with the products of the loops directly inside it split."""
    if not any(isinstance(structure_of(node), Loop) for node in program.nodes):
        return program
    nodes: list[Node] = []
    for node in program.nodes:
        found = structure_of(node)
        if isinstance(found, Loop):
            nodes += _Products(program, node, found).split()
        nodes.append(node)
    return Program(nodes, program.feeds, program.fetches, program.infos)


class _Products:
    """The products of one loop."""

    def __init__(self, program: Program, node: Node, loop: Loop) -> None:
        self._program = program
        self._node = node
        self._loop = loop
        self._infos = program.infos
        self._value = program.new_value
        self._before: list[Node] = []
        self._given: list[int] = []
        """New invariants, by the number that they have outside and inside."""
        self._replaced: dict[Node, list[Node]] = {}
        count = len(loop.variables)
        self._outside = dict(zip(loop.invariants, node.inputs[count:], strict=True))

    def split(self) -> list[Node]:
        """Changes the loop's node; returns those that are now needed before it."""
        body = self._loop.body
        producers = body.producers()
        users = body.takers()
        for value in body.fetches:
            users.setdefault(value, []).append(self._node)
        for node in body.nodes:
            if node.op_def.name == "Slice":
                self._cut_out_before(node, producers)
            elif node.op_def.name == "MatMul" and not node.attrs["transpose_a"]:
                if node.attrs["transpose_b"]:
                    self._drop_unused(node, users)
                elif not self._loop.swap_memory:
                    self._hoist(node, producers)
        if self._replaced:
            nodes = [new for n in body.nodes for new in self._replaced.get(n, [n])]
            add_invariants(self._program, self._node, self._given, nodes)
        return self._before

    # Parts of the weights ---------------------------------------------------------------------

    def _cut_out_before(self, part: Node, producers: dict[int, Node]) -> None:
        whole, *bounds = part.inputs
        makers = [producers.get(value) for value in bounds]
        if part.control or part.outputs[0] in self._loop.body.fetches:
            return
        if whole not in self._outside or None in self._dims_of(whole):
            return
        if not all(maker is not None and _const(maker) for maker in makers):
            return
        begin, extent = (self._vector(m.attrs["value"].tolist()) for m in makers if m is not None)
        inputs = (self._outside[whole], begin, extent)
        attrs = {"T": part.attrs["T"], "Index": dtypes.int32}
        self._before.append(made("Slice", part.op, inputs, part.outputs, attrs))
        self._given.append(part.outputs[0])
        self._replaced[part] = []

    def _dims_of(self, value: int) -> tuple[int | None, ...]:
        dims = self._infos[value].dims
        return (None,) if dims is None else dims

    # Parts that nobody uses -----------------------------------------------------------------

    def _drop_unused(self, product: Node, users: dict[int, list[Node]]) -> None:
        a, w = product.inputs
        takers = users.get(product.outputs[0], [])
        if w not in self._outside or len(takers) != 1 or takers[0].op_def.name != "SplitV":
            return
        split = takers[0]
        if split.control or product.control or split.inputs[0] != product.outputs[0]:
            return
        constants = {n.outputs[0]: n.attrs["value"] for n in self._loop.body.nodes if _const(n)}
        sizes, axis = (constants.get(value) for value in split.inputs[1:])
        if sizes is None or axis is None or int(axis) not in (1, -1) or (sizes < 0).any():
            return
        used = [value in users for value in split.outputs]
        if all(used):
            return
        parts = []
        for value, is_used, start, size in zip(
            split.outputs, used, np.cumsum(sizes) - sizes, sizes, strict=True
        ):
            if is_used:
                rows = self._rows_of(w, int(start), int(size))
                part = Node(product.op, product.op_def, (a, rows), (value,), (), product.attrs)
                parts.append(part)
        self._replaced[product] = []
        self._replaced[split] = parts

    # What does not depend on earlier iterations ----------------------------------------------

    def _hoist(self, product: Node, producers: dict[int, Node]) -> None:
        joined, w = product.inputs
        concat = producers.get(joined)
        if w not in self._outside or concat is None or concat.op_def.name != "ConcatV2":
            return
        axis = producers.get(concat.inputs[-1])
        if product.control or axis is None or not _const(axis):
            return
        if int(axis.attrs["value"]) not in (1, -1) or len(concat.inputs) != 3:
            return
        x, h = concat.inputs[:2]
        read = producers.get(x)
        columns = [self._columns(value) for value in (x, h)]
        if read is None or read.op_def.name != "TensorArrayReadV3" or None in columns:
            return
        if read.inputs[1] not in self._loop.variables:
            return
        filled = self._filled(read.inputs[0])
        if filled is None:
            return
        array, scatter = filled
        first, second = columns
        assert first is not None and second is not None
        ahead = self._ahead(array, scatter, self._rows(w, 0, first), product)
        info = self._infos[product.outputs[0]]
        of_x, of_h = (self._value(info.dtype, info.dims) for _ in range(2))
        attrs = {"dtype": info.dtype}
        inputs = (ahead[0], read.inputs[1], ahead[1])
        op, rows = product.op, self._rows_of(w, first, second)
        self._replaced[product] = [
            made("TensorArrayReadV3", op, inputs, (of_x,), attrs),
            Node(op, product.op_def, (h, rows), (of_h,), (), product.attrs),
            made("AddV2", op, (of_x, of_h), product.outputs, {"T": info.dtype}),
        ]

    def _columns(self, value: int) -> int | None:
        dims = self._infos[value].dims
        return dims[1] if dims is not None and len(dims) == 2 else None

    def _filled(self, inside: int) -> tuple[Node, Node] | None:
        """The nodes that made and filled the array, if it was filled once, before the loop."""
        handle = self._outside.get(inside)
        touching = [n for n in self._program.nodes if handle in n.inputs]
        maker = next((n for n in self._program.nodes if handle in n.outputs), None)
        before = touching[: touching.index(self._node)] if self._node in touching else []
        if maker is None or maker.op_def.name != "TensorArrayV3" or len(before) != 1:
            return None
        if any(
            n.op_def.name == "TensorArrayWriteV3" and n.inputs[0] == inside
            for n in self._loop.body.nodes
        ):
            return None
        if before[0].op_def.name != "TensorArrayScatterV3" or before[0].control:
            return None
        dims = self._infos[before[0].inputs[2]].dims
        return (maker, before[0]) if dims is not None and len(dims) == 3 else None

    def _ahead(self, array: Node, scatter: Node, rows: int, product: Node) -> tuple[int, int]:
        """An array with the product of each element with ``rows``; its handle and flow."""
        _, indices, x, _ = scatter.inputs
        info, op = self._infos[product.outputs[0]], product.op
        dims = self._infos[x].dims
        assert dims is not None
        whole = (*dims[:2], info.dims[1] if info.dims is not None else None)
        products = self._value(info.dtype, whole)
        attrs: dict[str, Any] = {"T": info.dtype}
        self._before.append(made("BatchMatMulV2", op, (x, rows), (products,), attrs))
        handle, flow = self._value(dtypes.resource, (2,)), self._value(dtypes.float32, ())
        filled = self._value(dtypes.float32, ())
        attrs = {
            "dtype": info.dtype,
            "element_shape": TensorShape(info.dims),
            "clear_after_read": False,
            "identical_element_shapes": True,
        }
        self._before.append(made("TensorArrayV3", op, array.inputs, (handle, flow), attrs))
        inputs, attrs = (handle, indices, products, flow), {"T": info.dtype}
        self._before.append(made("TensorArrayScatterV3", op, inputs, (filled,), attrs))
        self._given += [handle, filled]
        return handle, filled

    # Building -------------------------------------------------------------------------------

    def _rows(self, w: int, start: int, size: int) -> int:
        """Some rows of the weights, outside the loop."""
        info = self._infos[w]
        columns = info.dims[1] if info.dims is not None and len(info.dims) == 2 else None
        begin, extent = (self._vector([first, n]) for first, n in ((start, 0), (size, -1)))
        rows = self._value(info.dtype, (size, columns))
        attrs = {"T": info.dtype, "Index": dtypes.int32}
        inputs = (self._outside[w], begin, extent)
        self._before.append(made("Slice", self._node.op, inputs, (rows,), attrs))
        return rows

    def _rows_of(self, w: int, start: int, size: int) -> int:
        rows = self._rows(w, start, size)
        self._given.append(rows)
        return rows

    def _vector(self, numbers: list[int]) -> int:
        self._before.append(self._program.constant(self._node.op, np.array(numbers, np.int32)))
        return self._before[-1].outputs[0]


def _const(node: Node) -> bool:
    return node.op_def.name == "Const"
