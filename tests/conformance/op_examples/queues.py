"""Examples of operations on queues and their kin: each puts something in and takes it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.exchange import Builder, Example, Inputs, Steps

FLOAT, INT32, STRING, INT64 = 1, 3, 7, 9
ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
LABELS = [7, 8, 9]
COMPONENTS = {"component_types": [FLOAT, INT32], "shapes": [[2], []], "shared_name": "q"}
TYPES = {"component_types": [FLOAT, INT32]}


def made(op_type: str) -> str:
    """The type of queue op that makes the handle that ``op_type`` takes."""
    return "FIFOQueueV2" if op_type.endswith("V2") else "FIFOQueue"


def like(name: str, op_type: str) -> str:
    """``name`` in the version of ``op_type``."""
    return f"{name}V2" if op_type.endswith("V2") else name


def of_kind(**attrs: Any) -> Any:
    """A queue of a kind: filled, then drained one at a time and all at once."""

    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            queue = b.one(op_type, **{**COMPONENTS, "capacity": 10, **attrs})
            put = b.op(like("QueueEnqueueMany", op_type), queue, Inputs([ROWS, LABELS]))
            one = b.op(like("QueueDequeue", op_type), queue, timeout_ms=-1, **TYPES)
            rest = b.op(like("QueueDequeueMany", op_type), queue, 2, timeout_ms=-1, **TYPES)
            return [put, one, rest]

        return example

    return example_for


def prioritized(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        queue = b.one(op_type, component_types=[INT32], shapes=[[]], capacity=5, shared_name="p")
        priorities = np.array([3, 1, 2], np.int64)
        put = b.op(like("QueueEnqueueMany", op_type), queue, Inputs([priorities, LABELS]))
        types = [INT64, INT32]
        take = b.op(
            like("QueueDequeueMany", op_type), queue, 3, component_types=types, timeout_ms=-1
        )
        return [put, take]

    return example


def on_queue(op_type: str) -> Example:
    """Everything that can be done to a queue; ``op_type`` is part of it."""

    def example(b: Builder) -> Steps:
        queue = b.one(made(op_type), capacity=10, **COMPONENTS)
        put = b.op(like("QueueEnqueue", op_type), queue, Inputs([ROWS[0], 5]))
        many = b.op(like("QueueEnqueueMany", op_type), queue, Inputs([ROWS, LABELS]))
        size = b.op(like("QueueSize", op_type), queue)
        one = b.op(like("QueueDequeue", op_type), queue, timeout_ms=-1, **TYPES)
        two = b.op(like("QueueDequeueMany", op_type), queue, 2, timeout_ms=-1, **TYPES)
        close = b.op(like("QueueClose", op_type), queue)
        is_closed = b.op(like("QueueIsClosed", op_type), queue)
        rest = b.op(like("QueueDequeueUpTo", op_type), queue, 5, timeout_ms=-1, **TYPES)
        return [put, many, size, one, two, is_closed, close, is_closed, rest, size]

    return example


def on_barrier(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        barrier = b.one("Barrier", component_types=[FLOAT, INT32], shapes=[[], []])
        keys = np.array(["k1", "k2"], object)
        first = b.op("BarrierInsertMany", barrier, keys[:1], [1.5], component_index=0)
        second = b.op("BarrierInsertMany", barrier, keys, [10, 20], component_index=1)
        third = b.op("BarrierInsertMany", barrier, keys[1:], [2.5], component_index=0)
        sizes = [*b.op("BarrierReadySize", barrier), *b.op("BarrierIncompleteSize", barrier)]
        take = b.op("BarrierTakeMany", barrier, 2, timeout_ms=-1, **TYPES)
        close = b.op("BarrierClose", barrier)
        return [first, sizes, second, sizes, third, sizes, take, close]

    return example


STAGED: dict[str, Any] = {"dtypes": [FLOAT, INT32], "shared_name": "area"}


def on_stage(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        put = b.op("Stage", Inputs([ROWS, LABELS]), shared_name="area")
        size = b.op("StageSize", **STAGED)
        peek = b.op("StagePeek", 0, **STAGED)
        take = b.op("Unstage", **STAGED)
        clear = b.op("StageClear", **STAGED)
        return [put, size, peek, take, size, put, clear, size]

    return example


def on_map(op_type: str) -> Example:
    prefix = "OrderedMap" if op_type.startswith("Ordered") else "Map"

    def example(b: Builder) -> Steps:
        key = np.int64(4)
        first = b.op(f"{prefix}Stage", key, [0], Inputs([ROWS]), **STAGED)
        second = b.op(f"{prefix}Stage", key, [1], Inputs([LABELS]), **STAGED)
        sizes = [
            *b.op(f"{prefix}Size", **STAGED),
            *b.op(f"{prefix}IncompleteSize", **STAGED),
        ]
        peek = b.op(f"{prefix}Peek", key, [0, 1], **STAGED)
        take = b.op(f"{prefix}Unstage", key, [0, 1], **STAGED)
        any_key = b.op(f"{prefix}UnstageNoKey", [0, 1], **STAGED)
        clear = b.op(f"{prefix}Clear", **STAGED)
        return [first, sizes, second, sizes, peek, take, sizes, first, second, any_key, clear]

    return example


def on_accumulator(op_type: str) -> Example:
    resource = op_type.startswith("Resource")
    prefix = "Resource" if resource else ""

    def example(b: Builder) -> Steps:
        accumulator = b.one(
            f"{prefix}ConditionalAccumulator", dtype=FLOAT, shape=[3, 2], shared_name="a"
        )
        step = np.int64(1)
        apply = b.op(f"{prefix}AccumulatorApplyGradient", accumulator, step, ROWS)
        stale = b.op(f"{prefix}AccumulatorApplyGradient", accumulator, np.int64(0), ROWS)
        count = b.op(f"{prefix}AccumulatorNumAccumulated", accumulator)
        move = b.op(f"{prefix}AccumulatorSetGlobalStep", accumulator, step)
        take = b.op(f"{prefix}AccumulatorTakeGradient", accumulator, 2, dtype=FLOAT)
        return [move, apply, stale, count, apply, count, take, count]

    return example


def on_sparse_accumulator(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        accumulator = b.one(
            "SparseConditionalAccumulator", dtype=FLOAT, shape=[5, 2], shared_name="a"
        )
        shape = np.array([5, 2], np.int64)
        applies = [
            b.op(
                "SparseAccumulatorApplyGradient",
                accumulator,
                np.int64(0),
                np.array(indices),
                ROWS[: len(indices)],
                shape,
                has_known_shape=True,
            )
            for indices in ([0, 3, 4], [3])
        ]
        take = b.op("SparseAccumulatorTakeGradient", accumulator, 2, dtype=FLOAT)
        return [*applies, take]

    return example


EXAMPLES: dict[str, Any] = {"PriorityQueue": prioritized, "PriorityQueueV2": prioritized}
for suffix in ("", "V2"):
    EXAMPLES[f"FIFOQueue{suffix}"] = of_kind()
    EXAMPLES[f"PaddingFIFOQueue{suffix}"] = of_kind()
    EXAMPLES[f"RandomShuffleQueue{suffix}"] = of_kind(seed=3, seed2=5)
    EXAMPLES |= {
        f"Queue{name}{suffix}": on_queue
        for name in (
            [
                "Enqueue",
                "EnqueueMany",
                "Dequeue",
                "DequeueMany",
                "DequeueUpTo",
                "Close",
                "Size",
                "IsClosed",
            ]
        )
    }
EXAMPLES["Barrier"] = on_barrier
for name in ("InsertMany", "TakeMany", "Close", "ReadySize", "IncompleteSize"):
    EXAMPLES[f"Barrier{name}"] = on_barrier
for name in ("Stage", "Unstage", "StagePeek", "StageSize", "StageClear"):
    EXAMPLES[name] = on_stage
for prefix in ("Map", "OrderedMap"):
    for name in ["Stage", "Unstage", "Peek", "UnstageNoKey", "Size", "IncompleteSize", "Clear"]:
        EXAMPLES[f"{prefix}{name}"] = on_map
for prefix in ("", "Resource"):
    EXAMPLES[f"{prefix}ConditionalAccumulator"] = on_accumulator
    for name in ("ApplyGradient", "TakeGradient", "SetGlobalStep", "NumAccumulated"):
        EXAMPLES[f"{prefix}Accumulator{name}"] = on_accumulator
EXAMPLES["SparseConditionalAccumulator"] = on_sparse_accumulator
for name in ("ApplyGradient", "TakeGradient"):
    EXAMPLES[f"SparseAccumulator{name}"] = on_sparse_accumulator
