"""Examples of operations on ragged tensors, and of searches in sorted rows."""

from __future__ import annotations

import numpy as np

from tests.conformance.exchange import Builder, Example, Inputs, Steps, call

SPLITS = np.array([0, 3, 3, 7, 8], np.int64)
OUTER = np.array([0, 2, 2, 4], np.int64)
VALUES = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
ROWS = np.array([[1, 3, 5, 5], [2, 2, 7, 9]], np.int32)
WANTED = np.array([[0, 5, 6], [2, 8, 10]], np.int32)
ROWIDS = np.array([0, 0, 0, 2, 2, 2, 2, 3], np.int64)
UNKNOWN = np.array(-1, np.int64)
FLOAT, INT64 = 1, 9


def encoded(splits: list[np.ndarray], values: np.ndarray, batched: bool):
    """A ragged tensor as a variant, and back."""

    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            inputs = (Inputs(splits), values)
            made = b.op("RaggedTensorToVariant", *inputs, batched_input=batched)
            back = {"input_ragged_rank": -1, "output_ragged_rank": len(splits)}
            kinds = {"Tvalues": FLOAT, "Tsplits": INT64}
            return [b.op("RaggedTensorFromVariant", made[0], **back, **kinds)]

        return example

    return example_for


VARIANTS = [
    encoded([SPLITS], VALUES, False),
    encoded([SPLITS], VALUES, True),
    encoded([OUTER, SPLITS], np.stack([VALUES, -VALUES], axis=1), True),
]

EXAMPLES = {
    "RaggedTensorToVariant": VARIANTS,
    "RaggedTensorFromVariant": VARIANTS,
    "RaggedRange": [
        call([0, 5, 8], [3, 5, 12], [1, 1, 2]),
        call(np.array([0.0, 1.0]), np.array(1.5), np.array([0.25, 0.5])),
    ],
    "RaggedGather": [
        call(Inputs([SPLITS]), VALUES, [2, 0, 2], OUTPUT_RAGGED_RANK=1),
        call(Inputs([OUTER, SPLITS]), VALUES, [[2, 0], [1, 1]], OUTPUT_RAGGED_RANK=3),
    ],
    "RaggedTensorToTensor": [
        call(UNKNOWN, VALUES, 0.5, Inputs([SPLITS]), row_partition_types=["ROW_SPLITS"]),
        call(
            np.array([5, 2], np.int64),
            VALUES,
            0.5,
            Inputs([np.array(4, np.int64), ROWIDS]),
            row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
        ),
        call(
            UNKNOWN,
            np.stack([VALUES, -VALUES], axis=1),
            [7.0, 8.0],
            Inputs([OUTER, SPLITS]),
            row_partition_types=["ROW_SPLITS", "ROW_SPLITS"],
        ),
    ],
    "RaggedTensorToSparse": [
        call(Inputs([SPLITS]), VALUES),
        call(Inputs([OUTER, SPLITS]), np.stack([VALUES, -VALUES], axis=1)),
    ],
    "LowerBound": call(ROWS, WANTED),
    "UpperBound": call(ROWS, WANTED, out_type=9),
}
