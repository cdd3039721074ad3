"""Makes the matrix products of unrolled recurrences fewer and larger, and drops unused ones.

An unrolled network uses its weights at every time step. Their gradient is then a sum of products,
each of which reads and writes a whole gradient for a few rows of data:

* a sum of products becomes one product, its operands joined along the summed dimension;
* of a product that is split, only the used part is computed (the gradient of joined inputs, one of
  which is data, has a part that leads nowhere).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.passes.program.program import Node, Program, made


def merge_products(program: Program) -> Program:
    """The program with sums of products as one product, and split products as their used part."""
    kinds = {node.op_def.name for node in program.nodes}
    if "MatMul" not in kinds or kinds.isdisjoint(("AddN", "SplitV", "Split")):
        return program
    return _Merging(program).run()


class _Merging:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._infos = program.infos
        self._new_value = program.new_value
        self._uses = Counter(v for node in program.nodes for v in node.inputs)
        self._uses.update(v for v in program.fetches if v is not None)
        self._awaited = {c for node in program.nodes for c in node.control}
        self._products = {
            node.outputs[0]: node for node in program.nodes if node.op_def.name == "MatMul"
        }
        self._constants = {
            node.outputs[0]: node.attrs["value"]
            for node in program.nodes
            if node.op_def.name == "Const"
        }
        self._nodes: list[Node] = []
        self._changed = False

    def run(self) -> Program:
        program = self._program
        for node in program.nodes:
            merged = False
            if node not in self._awaited and not node.control:
                if node.op_def.name == "AddN":
                    merged = self._merge_sum(node)
                elif node.op_def.name in ("SplitV", "Split"):
                    merged = self._use_part(node)
            if not merged:
                self._nodes.append(node)
            self._changed = self._changed or merged
        if not self._changed:
            return program
        # What the replaced nodes used is left for the removal of dead code.
        return Program(self._nodes, program.feeds, program.fetches, program.infos)

    # Sums -----------------------------------------------------------------------------------

    def _merge_sum(self, node: Node) -> bool:
        groups: dict[Any, list[Node]] = {}
        for value in node.inputs:
            product = self._only_used_here(value)
            if product is not None and self._pays(product):
                flags = (product.attrs["transpose_a"], product.attrs["transpose_b"])
                groups.setdefault(flags, []).append(product)
        products = max(groups.values(), key=len, default=[])
        if len(products) < 2:
            return False
        attrs = products[0].attrs
        transpose_a, transpose_b = attrs["transpose_a"], attrs["transpose_b"]
        a = self._join(node, [p.inputs[0] for p in products], 0 if transpose_a else 1)
        b = self._join(node, [p.inputs[1] for p in products], 1 if transpose_b else 0)
        dtype = node.attrs["T"]
        merged = {p.outputs[0] for p in products}
        rest = tuple(v for v in node.inputs if v not in merged)
        total = node.outputs[0]
        merged_product = self._new_value(dtype, self._infos[total].dims) if rest else total
        self._nodes.append(Node(node.op, products[0].op_def, (a, b), (merged_product,), (), attrs))
        if rest:
            attrs = {**node.attrs, "N": len(rest) + 1}
            inputs = (*rest, merged_product)
            self._nodes.append(Node(node.op, node.op_def, inputs, (total,), (), attrs))
        return True

    def _only_used_here(self, value: int) -> Node | None:
        product = self._products.get(value)
        if product is None or self._uses[value] != 1 or product in self._awaited:
            return None
        return None if product.control else product

    def _pays(self, product: Node) -> bool:
        """Whether writing the product costs as much as making it: few terms for each element."""
        a, b = (self._infos[v].dims for v in product.inputs)
        if a is None or b is None or None in (*a, *b) or len(a) != 2 or len(b) != 2:
            return False
        rows, terms = a[::-1] if product.attrs["transpose_a"] else a
        columns = b[0] if product.attrs["transpose_b"] else b[1]
        assert rows is not None and terms is not None and columns is not None
        return terms <= min(rows, columns)

    def _join(self, node: Node, values: list[int], axis: int) -> int:
        """The matrices side by side along ``axis``."""
        dims = [self._infos[v].dims for v in values]
        joined: list[int | None] = list(dims[0] or (None, None))
        joined[axis] = sum(d[axis] for d in dims if d is not None and d[axis] is not None)  # type: ignore[misc]
        dtype = self._infos[values[0]].dtype.base_dtype
        where = self._constant(node, np.array(axis, np.int32))
        result = self._new_value(dtype, tuple(joined))
        attrs = {"N": len(values), "T": dtype, "Tidx": dtypes.int32}
        self._nodes.append(made("ConcatV2", node.op, (*values, where), (result,), attrs))
        return result

    # Parts ----------------------------------------------------------------------------------

    def _use_part(self, node: Node) -> bool:
        used = [i for i, value in enumerate(node.outputs) if self._uses[value]]
        positions = (0, 2) if node.op_def.name == "SplitV" else (1, 0)
        value, axis = node.inputs[positions[0]], self._constants.get(node.inputs[positions[1]])
        product = self._only_used_here(value)
        if len(used) != 1 or product is None or axis is None or int(axis) not in (1, -1):
            return False
        part = self._infos[node.outputs[used[0]]].dims
        widths = [self._infos[v].dims for v in node.outputs]
        if part is None or any(w is None or len(w) != 2 or w[1] is None for w in widths):
            return False
        start = sum(w[1] for w in widths[: used[0]])  # type: ignore[index, misc]
        size = part[1]
        assert size is not None
        a, b = product.inputs
        rows = product.attrs["transpose_b"]
        begin = np.array([start, 0] if rows else [0, start], np.int32)
        extent = np.array([size, -1] if rows else [-1, size], np.int32)
        dtype = node.attrs["T"]
        before = self._infos[b].dims or (None, None)
        sliced = self._new_value(dtype, (size, before[1]) if rows else (before[0], size))
        bounds = (self._constant(node, begin), self._constant(node, extent))
        attrs = {"T": dtype, "Index": dtypes.int32}
        self._nodes.append(made("Slice", node.op, (b, *bounds), (sliced,), attrs))
        outputs = (node.outputs[used[0]],)
        self._nodes.append(Node(node.op, product.op_def, (a, sliced), outputs, (), product.attrs))
        return True

    def _constant(self, node: Node, array: np.ndarray) -> int:
        self._nodes.append(self._program.constant(node.op, array))
        return self._nodes[-1].outputs[0]
