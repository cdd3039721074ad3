"""Examples of operations on the shape and order of elements, reductions and products."""

import numpy as np

from tests.conformance.exchange import Builder, Inputs, Steps, call

GRID = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
SQUARE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
VECTOR = np.array([3, 1, 2], np.float32)
FLAGS = np.array([[True, False], [True, True]])

EXAMPLES = {
    name: [call(MATRIX, [1]), call(MATRIX, [0, 1], keep_dims=True)]
    for name in ("Max", "Mean", "Min", "Prod", "Sum", "EuclideanNorm")
}
EXAMPLES |= {name: call(FLAGS, [0]) for name in ("All", "Any")}
EXAMPLES |= {name: call(MATRIX, 1) for name in ("ArgMax", "ArgMin")}
EXAMPLES |= {name: call(MATRIX, 1) for name in ("Cumsum", "Cumprod", "CumulativeLogsumexp")}
EXAMPLES |= {name: call(MATRIX, [0, 0]) for name in ("SegmentSum", "SegmentProd", "SegmentMean")}
EXAMPLES |= {name: call(MATRIX, [0, 0]) for name in ("SegmentMax", "SegmentMin")}
EXAMPLES |= {
    f"UnsortedSegment{name}": call(MATRIX, [1, 0], 3) for name in ("Max", "Min", "Prod", "Sum")
}
EXAMPLES |= {
    "Bincount": call([1, 1, 3], 5, [0.5, 1.0, 2.0]),
    "BroadcastArgs": call([2, 1], [3]),
    "BroadcastGradientArgs": call([2, 1], [1, 3]),
    "BroadcastTo": call([1.0, 2.0], [3, 2]),
    "Concat": call(1, Inputs([MATRIX, MATRIX])),
    "ConcatOffset": call(1, Inputs([[2, 3], [2, 5]])),
    "ConcatV2": call(Inputs([MATRIX, MATRIX]), -1),
    "ConjugateTranspose": call(np.array([[1 + 2j, 3j]], np.complex64), [1, 0]),
    "EnsureShape": call(MATRIX, shape=[2, None]),
    "ExpandDims": call(MATRIX, -1),
    "Fill": call([2, 3], 7.0),
    "Gather": call(MATRIX, [1, 0, 1]),
    "GatherNd": call(MATRIX, [[0, 1], [1, 2]]),
    "GatherV2": [call(MATRIX, [2, 0], 1), call(MATRIX, [[2], [0]], 1, batch_dims=1)],
    "IdentityN": call(Inputs([1.0, [2, 3]])),
    "InvertPermutation": call([2, 0, 1]),
    "LinSpace": call(0.0, 1.0, 5),
    "OneHot": call([0, 2], 3, 5.0, -1.0),
    "Pack": call(Inputs([VECTOR, VECTOR]), axis=1),
    "Pad": call(MATRIX, [[1, 0], [0, 2]]),
    "PadV2": call(MATRIX, [[1, 0], [0, 2]], 9.0),
    "MirrorPad": call(MATRIX, [[1, 0], [0, 2]], mode="REFLECT"),
    "MirrorPadGrad": call(np.ones((3, 5), np.float32), [[1, 0], [0, 2]], mode="REFLECT"),
    "ParallelConcat": call(Inputs([VECTOR[None], VECTOR[None]]), shape=[2, 3]),
    "Range": call(1, 10, 3),
    "Rank": call(GRID),
    "Reshape": call(GRID, [4, -1]),
    "Reverse": call(MATRIX, np.array([False, True])),
    "ReverseV2": call(GRID, [0, -1]),
    "ReverseSequence": call(MATRIX, [2, 3], seq_dim=1),
    "Roll": call(MATRIX, [1], [1]),
    "ScatterNd": call([[0], [2]], [5.0, 6.0], [4]),
    "Shape": [call(GRID), call(GRID, out_type=9)],
    "ShapeN": call(Inputs([GRID, GRID])),
    "Size": call(GRID),
    "Slice": call(GRID, [0, 1, 0], [-1, 2, 2]),
    "Split": call(2, GRID, num_split=2),
    "SplitV": call(GRID, [1, 3], 2, num_split=2),
    "Squeeze": call(GRID[:, :1], squeeze_dims=[1]),
    "StridedSlice": [
        call(GRID, [0, 1], [2, 3], [1, 1]),
        call(GRID, [1, 0, 3], [2, 0, 0], [1, 1, -1], shrink_axis_mask=1, new_axis_mask=2),
        call(GRID, [0, 1], [0, 2], [1, 1], ellipsis_mask=1, end_mask=1),
    ],
    "StridedSliceGrad": call([2, 3], [0, 1], [2, 3], [1, 1], np.ones((2, 2), np.float32)),
    "TensorScatterAdd": call(MATRIX, [[0, 1]], [5.0]),
    "TensorScatterMax": call(MATRIX, [[0, 1]], [5.0]),
    "TensorScatterMin": call(MATRIX, [[0, 1]], [5.0]),
    "TensorScatterSub": call(MATRIX, [[0, 1]], [5.0]),
    "TensorScatterUpdate": call(MATRIX, [[0, 1]], [5.0]),
    "Tile": call(MATRIX, [2, 1]),
    "TopKV2": call(MATRIX, 2),
    "InTopK": call(MATRIX, [2, 0], k=1),
    "InTopKV2": call(MATRIX, [2, 0], 1),
    "Transpose": call(GRID, [2, 0, 1]),
    "Unpack": call(MATRIX, num=3, axis=1),
    "Where": call(FLAGS),
    "Unique": call([3, 1, 3, 2]),
    "UniqueV2": call([3, 1, 3, 2], [0]),
    "UniqueWithCounts": call([3, 1, 3, 2]),
    "UniqueWithCountsV2": call([3, 1, 3, 2], [0]),
    "ListDiff": call([1, 2, 3, 4], [2, 4]),
    "DynamicPartition": call([1.0, 2.0, 3.0], [0, 1, 0], num_partitions=2),
    "DynamicStitch": call(Inputs([[0, 2], [1]]), Inputs([[1.0, 3.0], [2.0]])),
    "ParallelDynamicStitch": call(Inputs([[0, 2], [1]]), Inputs([[1.0, 3.0], [2.0]])),
    "SparseToDense": call([[0, 1], [1, 0]], [2, 2], [5.0, 6.0], 0.0),
    "SpaceToBatchND": call(SQUARE, [2, 2], [[0, 0]] * 2),
    "BatchToSpaceND": call(SQUARE.reshape(4, 2, 2, 1), [2, 2], [[0, 0]] * 2),
    "SpaceToBatch": call(SQUARE, [[0, 0]] * 2, block_size=2),
    "BatchToSpace": call(SQUARE.reshape(4, 2, 2, 1), [[0, 0]] * 2, block_size=2),
    "SpaceToDepth": call(SQUARE, block_size=2),
    "DepthToSpace": call(SQUARE.reshape(1, 2, 2, 4), block_size=2),
    "Diag": call([1.0, 2.0]),
    "DiagPart": call([[1.0, 2.0], [3.0, 4.0]]),
    "MatrixDiag": call([1.0, 2.0]),
    "MatrixDiagPart": call(MATRIX),
    "MatrixSetDiag": call(MATRIX, [8.0, 9.0]),
    "MatrixDiagV3": call([1.0, 2.0], 1, -1, -1, 0.0),
    "MatrixDiagPartV3": call(MATRIX, [-1, 1], 0.0),
    "MatrixSetDiagV3": call(MATRIX, [8.0, 9.0], 1),
    "MatrixDiagV2": [
        call([1.0, 2.0], 1, -1, -1, 0.0),
        call([[1.0, 2.0], [3.0, 4.0]], [0, 1], 2, 3, 9.0),
    ],
    "MatrixDiagPartV2": call(MATRIX, [-1, 1], 7.0),
    "MatrixSetDiagV2": call(MATRIX, [8.0, 9.0], 1),
    "MatrixBandPart": call(MATRIX, np.int64(0), np.int64(1)),
    "XlaDynamicUpdateSlice": call(MATRIX, [[9.0]], [1, 1]),
    "HistogramFixedWidth": call([1.0, 2.0], [0.0, 5.0], 5),
    "Bucketize": call([1.0, 5.0, 12.0], boundaries=[2.0, 10.0]),
    "Cross": call([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]),
    "LowerBound": call([[1.0, 2.0, 3.0]], [[2.0]]),
    "UpperBound": call([[1.0, 2.0, 3.0]], [[2.0]]),
    # Products
    "MatMul": [call(MATRIX, GRID[0]), call(MATRIX, MATRIX, transpose_b=True)],
    "BatchMatMul": call(GRID, GRID, adj_y=True),
    "BatchMatMulV2": call(GRID, GRID[:1], adj_x=True),
    "BatchMatMulV3": call(GRID, GRID, adj_y=True, Tout=1),
    "SparseMatMul": call(MATRIX, GRID[0]),
    "Einsum": call(Inputs([MATRIX, GRID[0]]), equation="ij,jk->ik"),
    "LogMatrixDeterminant": call([[2.0, 1.0], [1.0, 3.0]]),
    "Lu": call([[2.0, 1.0], [4.0, 3.0]]),
    "MatrixLogarithm": call(np.array([[2, 1], [0, 3]], np.complex64)),
    "MatrixSquareRoot": call([[4.0, 1.0], [0.0, 9.0]]),
    "TridiagonalMatMul": call([[1.0, 0.0]], [[2.0, 3.0]], [[0.0, 1.0]], [[1.0], [2.0]]),
    "TridiagonalSolve": call([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]], [[1.0], [2.0]]),
    "Qr": call([[2.0, 1.0], [1.0, 3.0]]),
    "Svd": call([[3.0, 0.0], [0.0, 2.0]]),  # whose vectors have no other signs
    "SelfAdjointEigV2": call([[2.0, 0.0], [0.0, 3.0]]),
    "MatrixInverse": call([[2.0, 1.0], [1.0, 3.0]]),
    "MatrixDeterminant": call([[2.0, 1.0], [1.0, 3.0]]),
    "Cholesky": call([[2.0, 1.0], [1.0, 3.0]]),
    "MatrixSolve": call([[2.0, 1.0], [1.0, 3.0]], [[1.0], [2.0]]),
    "MatrixTriangularSolve": call([[2.0, 0.0], [1.0, 3.0]], [[1.0], [2.0]]),
}


def placeholder(b: Builder) -> Steps:
    """A placeholder that nothing needs travels along."""
    b.op("Placeholder", dtype=1, shape=[None, 3])
    return [b.op("Identity", [1.0, 2.0])]


def no_op(b: Builder) -> Steps:
    return [b.op("NoOp")]


EXAMPLES["Const"] = [
    (lambda _, value=value: lambda b: [b.op("Identity", value)])
    for value in (
        np.array([[1, 2], [3, 4]], np.int8),
        np.array([True, False]),
        np.array([1 + 2j], np.complex128),
        np.array([], np.float32),
        np.float16(1.5),
        np.array(["a", "\u00e9", ""], object),
    )
]
EXAMPLES["Placeholder"] = lambda _: placeholder
EXAMPLES["PlaceholderWithDefault"] = call([1.0, 2.0], shape=[None])
EXAMPLES["NoOp"] = lambda _: no_op
EXAMPLES |= {
    "UnravelIndex": call([2, 5, 7], [3, 3]),
    "HistogramFixedWidth": [
        call([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5),
        call([0, 3, 7, 9], [0, 8], 4, dtype=9),
    ],
}
