"""Stacks and TensorArrays: resources that live for one step, and the operations that touch them.

A compiled segment keeps them in buffers of fixed size. So all operations that touch one must be in
the same segment, and the segment must know a TensorArray's size, and the size to which it grows.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.graph import dtypes
from runnel.passes.program.program import Node, Program

MAKERS = frozenset({"StackV2", "TensorArrayV3"})
DERIVED = frozenset({"TensorArrayGradV3", "TensorArrayGradWithShape"})
RESOURCE_OPS = MAKERS.union(DERIVED) | {
    "StackPushV2",
    "StackPopV2",
    "_StackPopJoined",
    "StackCloseV2",
    "TensorArrayWriteV3",
    "TensorArrayReadV3",
    "TensorArraySizeV3",
    "TensorArrayGatherV3",
    "TensorArrayScatterV3",
    "TensorArrayConcatV3",
    "TensorArraySplitV3",
    "TensorArrayCloseV3",
}
_HOST_ELEMENTS = frozenset({dtypes.string, dtypes.variant, dtypes.resource})


def can_be_buffer(node: Node) -> bool:
    """False for what only the host has."""
    element = node.attrs.get("elem_type") or node.attrs.get("dtype") or node.attrs.get("T")
    return element is None or element.base_dtype not in _HOST_ELEMENTS


class StepResources:
    """The stacks and arrays of a program, and the nodes that touch each."""

    def __init__(self, program: Program) -> None:
        self.root_of: dict[int, int] = {}
        """The handle of the stack or array that each handle belongs to."""
        self.touching: dict[int, list[Node]] = {}
        for node in program.nodes:
            for value in node.inputs:
                root = self.root_of.get(value)
                if root is not None:
                    self.touching[root].append(node)
                    if node.op_def.name in DERIVED:
                        self.root_of[node.outputs[0]] = root
            if node.op_def.name in MAKERS:
                handle = node.outputs[0]
                self.root_of[handle] = handle
                self.touching[handle] = [node]

    def roots(self, values: Iterable[int]) -> set[int]:
        """The stacks and arrays that ``values`` are handles of."""
        return {self.root_of[value] for value in values if value in self.root_of}
