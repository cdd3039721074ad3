"""Finds lines of written Python that may put their result into the memory of a spent array.

An array in new memory costs more than the arithmetic on some thousand numbers. A ufunc may put its
result where one of its arguments is, if nobody else can see that: a node of the same program has
made it, no node that could keep it or a view of it has taken it, and none takes it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node, ValueInfo
from runnel.runtime.interpret import verification

_NEW = frozenset({"MatMul", "Sigmoid", "SigmoidGrad", "TanhGrad", "BiasAdd", "ConcatV2"})
"""Beside ufuncs: operations that make a new array and keep nothing of what they take."""
_LAST_AXIS = ("NHWC", b"NHWC")


class SpentArrays:
    """The arrays of a program that only its lines have seen, as these are written."""

    def __init__(self, infos: list[ValueInfo]) -> None:
        self._infos = infos
        self._own: set[str] = set()
        """Names of arrays that nobody else holds."""

    def in_place(
        self, node: Node, call: Any, arguments: Sequence[str], spent: Collection[str]
    ) -> tuple[Any, list[str]]:
        """What computes ``node``, and its arguments, with the place for the result if there is one.

        ``call`` is its kernel, ``spent`` are the names that no later line uses.
        """
        kind, given = node.op_def.name, list(arguments)
        if any(self._infos[value].dtype.name == "variant" for value in node.inputs):
            return call, given  # what is no array
        is_new = kind in _NEW or (kind == "AddN" and len(arguments) > 1)
        computes_in_place = isinstance(call, np.ufunc) and (call.nin, call.nout) == (len(given), 1)
        if not verification.enabled:
            if kind == "BiasAdd" and self._adds_to_last_axis(node):
                call, computes_in_place = np.add, True
            elif kind == "AddN" and len(arguments) == 2:
                call, computes_in_place = partial(_added, call), True
        if computes_in_place:
            is_new = True
            given += [place_of(call) + place for place in self._place(node, arguments, spent)]
        if not is_new:
            self._own.difference_update(arguments)
        elif self._has_axes(node.outputs[0]):
            self._own.add(f"w{node.outputs[0]}")
        return call, given

    def give(self, names: Collection[str]) -> None:
        """Notes that others may keep what these names stand for."""
        self._own.difference_update(names)

    def _place(self, node: Node, arguments: Sequence[str], spent: Collection[str]) -> list[str]:
        result = self._infos[node.outputs[0]]
        if not self._has_axes(node.outputs[0]):
            return []
        for position, name in enumerate(arguments):
            info = self._infos[node.inputs[position]]
            if name not in spent or name not in self._own or info.dtype is not result.dtype:
                continue
            if info.dims is None or len(info.dims) != len(result.dims or ()):
                continue
            others = [n for place, n in enumerate(arguments) if place != position and n != name]
            if self._keeps_shape(node, position):
                return [name]
            same = " and ".join(f"{name}.shape == {other}.shape" for other in others)
            return [f"{name} if {same} else None" if same else name]
        return []

    def _keeps_shape(self, node: Node, position: int) -> bool:
        """True when the result is known to have the shape of the argument at ``position``."""
        dims = self._infos[node.inputs[position]].dims
        if is_fully_defined(dims) and dims == self._infos[node.outputs[0]].dims:
            return True
        rest = [self._infos[v].dims for p, v in enumerate(node.inputs) if p != position]
        if node.op_def.name == "BiasAdd":
            return position == 0
        if node.op_def.name == "AddN":
            return True
        return all(other == () for other in rest)

    def _has_axes(self, value: int) -> bool:
        return bool(self._infos[value].dims)

    def _adds_to_last_axis(self, node: Node) -> bool:
        value, bias = (self._infos[v].dims for v in node.inputs)
        if value is None or len(value) < 2 or value[-1] is None or bias != (value[-1],):
            return False
        return node.attrs["data_format"] in _LAST_AXIS


def place_of(call: Any) -> str:
    """What stands in a line of Python before the argument that says where the result goes."""
    # By position is a little faster; but these two warn of it, since NumPy 2.4.
    return "out=" if call in (np.maximum, np.minimum) else ""


def _added(kernel: Callable[..., Any], a: Any, b: Any, place: Any = None) -> Any:
    """The sum of two arrays of one shape; ``kernel`` has the words where they have not."""
    return np.add(a, b, place) if a.shape == b.shape else kernel(a, b)
