"""The one kind of cycle that a graph may have: an iteration's end feeds the next one's start."""

from __future__ import annotations

from runnel.graph.operation import Operation, Tensor

MERGES = frozenset({"Merge", "RefMerge"})
NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})


def closes_loop(tensor: Tensor, consumer: Operation) -> bool:
    """True when ``tensor`` reaches ``consumer`` one iteration later than it was made."""
    return tensor.op.op_def.name in NEXT_ITERATIONS and consumer.op_def.name in MERGES
