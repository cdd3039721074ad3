"""Examples of operations on sparse tensors."""

from __future__ import annotations

import numpy as np

from tests.conformance.exchange import Builder, Example, Inputs, Steps, call

PLACES = np.array([[0, 0], [0, 2], [1, 1], [3, 0]], np.int64)
VALUES = np.array([1, 2, -3, 4], np.float32)
SHAPE = np.array([4, 3], np.int64)
OTHER = np.array([[0, 1], [0, 2], [3, 0]], np.int64)
MORE = np.array([5, -2, 7], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
MIXED = PLACES[[2, 0, 3, 1]]
FIRST = (PLACES, VALUES, SHAPE)
SECOND = (OTHER, MORE, SHAPE)
DATA = np.arange(8, dtype=np.float32).reshape(4, 2)
TEXTS = np.array([b"a", b"", b"\xff", b"longer"], object)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def serialized(many: bool, values: np.ndarray, kind: int):
    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            made = b.op("SerializeManySparse" if many else "SerializeSparse", PLACES, values, SHAPE)
            back = "DeserializeManySparse" if many else "DeserializeSparse"
            return [made, b.op(back, made[0], dtype=kind)]

        return example

    return example_for


EXAMPLES = {
    "SparseToDense": [
        call(PLACES, SHAPE, VALUES, 9.0),
        call([1, 3], [5], 2.0, 0.0),
        call(MIXED, SHAPE, VALUES, 0.0, validate_indices=False),
        call(PLACES, SHAPE, TEXTS, b"none"),
    ],
    "SparseReorder": [call(MIXED, VALUES, SHAPE), call(MIXED, TEXTS, SHAPE)],
    "SparseReshape": [call(PLACES, SHAPE, ints(2, 6)), call(PLACES, SHAPE, ints(-1, 2, 3))],
    "SparseSlice": call(*FIRST, ints(0, 1), ints(2, 5)),
    "SparseSliceGrad": call(VALUES[:2], PLACES, ints(0, 1), ints(0, 1, 1, 0).reshape(2, 2)),
    "SparseConcat": [
        call(
            Inputs([PLACES, OTHER]),
            Inputs([VALUES, MORE]),
            Inputs([SHAPE, SHAPE]),
            concat_dim=axis,
        )
        for axis in (0, 1, -1)
    ],
    "SparseSplit": [
        call(np.int64(0), *FIRST, num_split=3),
        call(np.int64(1), PLACES, TEXTS, SHAPE, num_split=2),
    ],
    "SparseFillEmptyRows": [
        call(*FIRST, -1.0),
        call(MIXED, VALUES, SHAPE, -1.0),
        call(PLACES, TEXTS, SHAPE, b"none"),
    ],
    "SparseFillEmptyRowsGrad": call(ints(2, 0), np.array([1, 2, 4, 8], np.float32)),
    "SparseAdd": [call(*FIRST, *SECOND, 0.0), call(*FIRST, *SECOND, 2.5)],
    "SparseAddGrad": call(
        np.array([1, 2, 4], np.float32), PLACES, OTHER, np.concatenate([PLACES[:2], OTHER[2:]])
    ),
    "SparseTensorDenseAdd": call(*FIRST, DENSE),
    "SparseSparseMaximum": call(*FIRST, *SECOND),
    "SparseSparseMinimum": call(*FIRST, *SECOND),
    "SparseSoftmax": call(*FIRST),
    "SparseTensorDenseMatMul": [
        call(*FIRST, DENSE[:3]),
        call(*FIRST, DENSE, adjoint_a=True),
        call(*FIRST, DENSE, adjoint_b=True),
        call(
            PLACES.astype(np.int32), VALUES, SHAPE, DENSE.T.copy(), adjoint_a=True, adjoint_b=True
        ),
    ],
    "SerializeSparse": [serialized(False, VALUES, 1), serialized(False, TEXTS, 7)],
    "SerializeManySparse": [serialized(True, VALUES, 1), serialized(True, TEXTS, 7)],
    "DeserializeSparse": serialized(False, VALUES, 1),
    "DeserializeManySparse": serialized(True, VALUES, 1),
}
for name in ("Add", "Mul", "Div"):
    EXAMPLES[f"SparseDenseCwise{name}"] = [
        call(*FIRST, DENSE),
        call(*FIRST, DENSE[0]),
        call(*FIRST, DENSE[:, :1]),
        call(PLACES, ints(7, -7, 9, 5), SHAPE, ints(2, -2, 3)),
    ]
for name in ("Sum", "Max"):
    for sparse in ("", "Sparse"):
        EXAMPLES[f"SparseReduce{name}{sparse}"] = [
            call(*FIRST, [1]),
            call(*FIRST, [-2], keep_dims=True),
            call(*FIRST, [0, 1]),
        ]
for name in ("Sum", "Mean", "SqrtN"):
    EXAMPLES[f"SparseSegment{name}"] = call(DATA, [0, 3, 1], [0, 0, 2])
    EXAMPLES[f"SparseSegment{name}WithNumSegments"] = call(DATA, [0, 3, 1], [0, 0, 2], 5)
    EXAMPLES[f"SparseSegment{name}Grad"] = call(DATA[:3], [0, 3, 0], [0, 0, 2], 5)

WORDS = np.array([b"a", b"bb", b"a"], object)
GROUPS = ints(0, 0, 0, 1, 1, 0).reshape(3, 2)
COUNTS = np.array([5, 7, 9], np.int64)
TWO = ints(2, 2)
GRID = np.array([[1, 2, 3], [4, 4, 5]], np.int64)
CROSSED = (
    *(Inputs([GROUPS, GROUPS]), Inputs([WORDS, COUNTS]), Inputs([TWO, TWO])),
    Inputs([GRID]),
)
KEY = 0xDECAFCAFFE
EXAMPLES |= {
    "EditDistance": [
        call(PLACES, VALUES, SHAPE, OTHER, MORE, SHAPE),
        call(GROUPS, WORDS, TWO, GROUPS[:2], WORDS[1:], TWO, normalize=False),
    ],
    "DenseToDenseSetOperation": [
        call(GRID, GRID[::-1] - 1, set_operation=name)
        for name in ("a-b", "b-a", "intersection", "union")
    ],
    "DenseToSparseSetOperation": call(GRID, GROUPS, COUNTS - 4, TWO, set_operation="union"),
    "SparseToSparseSetOperation": [
        call(GROUPS, WORDS, TWO, GROUPS[1:], WORDS[1:], TWO, set_operation="a-b"),
        call(GROUPS, COUNTS, TWO, GROUPS, COUNTS % 7, TWO, set_operation="union"),
    ],
    "SetSize": call(GROUPS, WORDS, TWO),
    "SparseCross": [
        call(
            *CROSSED,
            hashed_output=hashed,
            num_buckets=buckets,
            hash_key=KEY,
            internal_type=9,
            out_type=kind,
        )
        for hashed, buckets, kind in ((False, 0, 7), (True, 1000, 9), (True, 0, 9))
    ],
}
