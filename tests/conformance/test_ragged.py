"""Ragged tensors compared with TensorFlow's: what is made of them, indices, gradients, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel  # noqa: E402
from tests.conformance.same_fetches import assert_same_fetches
from tests.conformance.side_by_side import tensorflow  # noqa: E402

ROWS = [[3, 1, 4], [], [1, 5, 9, 2], [6]]
DEEP = [[[1, 2], [3]], [], [[4, 5, 6], [], [7]]]
FLOATS = [[1.5, -2.0], [], [0.25]]
MATRIX = np.arange(12).reshape(3, 4)


def plain(value: Any) -> Any:
    """A fetched value as lists, with its type."""
    if hasattr(value, "to_list"):
        return ("ragged", np.asarray(value.flat_values).dtype.kind, value.to_list())
    if isinstance(value, tuple) and hasattr(value, "dense_shape"):
        return [plain(part) for part in value]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    array = np.asarray(value)
    kind = "O" if array.dtype.kind in "SO" else array.dtype.name
    return (kind, array.shape, array.tolist())


def fetched(tf: Any, build: Callable[[Any], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as sess:
        return plain(sess.run(build(tf)))


MAKING: dict[str, Callable[[Any], list[Any]]] = {
    "constants": lambda tf: [
        tf.ragged.constant(ROWS),
        tf.ragged.constant(DEEP, tf.int64),
        tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1),
        tf.ragged.constant([["a", "bc"], []]),
        tf.ragged.constant([[], []], tf.float32, ragged_rank=1, inner_shape=(2,)),
    ],
    "partitions": lambda tf: [
        tf.RaggedTensor.from_row_splits([3, 1, 4, 1], [0, 3, 3, 4]),
        tf.RaggedTensor.from_row_lengths([3, 1, 4, 1], [3, 0, 1]),
        tf.RaggedTensor.from_value_rowids([3, 1, 4, 1], [0, 0, 2, 2]),
        tf.RaggedTensor.from_value_rowids([3, 1, 4, 1], [0, 0, 2, 2], nrows=5),
        tf.RaggedTensor.from_row_starts([3, 1, 4, 1], [0, 3, 3]),
        tf.RaggedTensor.from_row_limits([3, 1, 4, 1], [3, 3, 4]),
        tf.RaggedTensor.from_nested_row_splits([3, 1, 4, 1], [[0, 2, 3], [0, 1, 1, 4]]),
        tf.RaggedTensor.from_nested_row_lengths([3, 1, 4, 1], [[2, 1], [1, 0, 3]]),
        tf.RaggedTensor.from_nested_value_rowids([3, 1, 4], [[0, 0, 1], [0, 2, 2]]),
    ],
    "tensors": lambda tf: [
        tf.RaggedTensor.from_tensor(MATRIX),
        tf.RaggedTensor.from_tensor(MATRIX, lengths=[1, 0, 3]),
        tf.RaggedTensor.from_tensor([[1, 0, 2, 0], [0, 0, 0, 0], [3, 3, 3, 3]], padding=0),
        tf.RaggedTensor.from_tensor(MATRIX.reshape(3, 2, 2), ragged_rank=2),
        tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 0], [2, 0], [2, 1]], [1, 2, 3], [4, 3])),
    ],
    "dense": lambda tf: [
        tf.ragged.constant(ROWS).to_tensor(),
        tf.ragged.constant(ROWS).to_tensor(-1),
        tf.ragged.constant(DEEP).to_tensor(),
        tf.ragged.constant([["a", "bc"], []]).to_tensor(),
        tf.ragged.constant([[[1, 2]], [], [[3, 4], [5, 6]]], ragged_rank=1).to_tensor([8, 9]),
        tf.ragged.constant(ROWS).to_sparse(),
        tf.ragged.constant(DEEP).to_sparse(),
        tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1).to_sparse(),
    ],
    "properties": lambda tf: (
        [
            part
            for rt in (tf.ragged.constant(ROWS), tf.ragged.constant(DEEP))
            for part in (
                rt.row_splits,
                rt.row_lengths(),
                rt.row_starts(),
                rt.row_limits(),
                rt.nrows(),
                rt.value_rowids(),
                rt.flat_values,
                rt.bounding_shape(),
                rt.bounding_shape(axis=1),
                list(rt.nested_row_lengths()),
            )
        ]
        + [tf.ragged.constant(DEEP).row_lengths(axis=2)]
    ),
    "functions": lambda tf: [
        tf.ragged.range([0, 5, 8], [3, 5, 12]),
        tf.ragged.range([3, 0]),
        tf.ragged.range([0, 5], [10, 0], [3, -2]),
        tf.ragged.range([0.0], [1.0], 0.3),
        tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2, 2, 4]),
        tf.ragged.segment_ids_to_row_splits([0, 2], 5),
        tf.ragged.stack([[1, 2], [3]]),
        tf.ragged.stack([tf.ragged.constant(ROWS), tf.ragged.constant([[8], [9]])]),
        tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [1, 0, 1, 3], 5),
        tf.ragged.map_flat_values(tf.square, tf.ragged.constant(DEEP)),
        tf.ragged.boolean_mask(MATRIX, MATRIX % 3 == 0),
        tf.ragged.boolean_mask(
            tf.ragged.constant([[1, 2, 3], [4], [5, 6]]),
            tf.ragged.constant([[True, False, True], [False], [True, True]]),
        ),
        tf.ragged.boolean_mask(tf.ragged.constant(ROWS), [True, True, False, True]),
        tf.repeat([3, 4], [1, 2]),
        tf.repeat(MATRIX, 2, axis=1),
        tf.searchsorted([[1, 3, 5], [2, 2, 7]], [[0, 3], [2, 9]], side="right"),
    ],
    "arithmetic": lambda tf: [
        tf.ragged.constant(ROWS) + 1,
        3 - tf.ragged.constant(ROWS) * tf.ragged.constant(ROWS),
        -tf.ragged.constant(FLOATS),
        tf.abs(tf.ragged.constant(FLOATS)),
        tf.cast(tf.ragged.constant(FLOATS), tf.int32),
        tf.ragged.constant(ROWS) > 2,
        tf.add(tf.ragged.constant(ROWS), tf.constant([[10], [20], [30], [40]])),
        tf.equal(tf.ragged.constant(ROWS), 1),
        tf.maximum(tf.ragged.constant(FLOATS), 0.0),
    ],
    "reductions": lambda tf: (
        [
            reduce(tf.ragged.constant(rows), axis=axis)
            for reduce in (tf.reduce_sum, tf.reduce_max, tf.reduce_prod)
            for rows in (ROWS, DEEP)
            for axis in ([None, 1, -1] if rows is DEEP else [None, 0, 1])
            if not (rows is DEEP and axis == 1)
        ]
        + [
            tf.reduce_mean(tf.ragged.constant([[1.0, 2.0], [4.0]]), axis=1),
            tf.reduce_any(tf.ragged.constant([[True, False], [False]]), axis=1),
            tf.reduce_all(tf.ragged.constant([[True, False], [True]]), axis=1),
            tf.reduce_sum(tf.ragged.constant(ROWS), axis=1, keepdims=True),
        ]
    ),
    "rows": lambda tf: [
        tf.concat([tf.ragged.constant(ROWS), tf.ragged.constant([[8], [9]])], 0),
        tf.concat([tf.ragged.constant(ROWS[:2]), tf.ragged.constant([[8], [9, 7]])], 1),
        tf.gather(tf.ragged.constant(ROWS), [2, 0, 2]),
        tf.gather(tf.ragged.constant(DEEP), [[2, 0], [0, 1]]),
        tf.gather([10, 20, 30], tf.ragged.constant([[0, 2], [], [1]])),
        tf.expand_dims(tf.ragged.constant(ROWS), 0),
        tf.expand_dims(tf.ragged.constant(ROWS), 1),
        tf.size(tf.ragged.constant(ROWS)),
        tf.rank(tf.ragged.constant(DEEP)),
    ],
}
MAKING["strings"] = lambda tf: [
    tf.strings.split(["a b", "", "c"], result_type="RaggedTensor"),
    tf.string_split(["a b", "", "c"], result_type="RaggedTensor"),
    tf.strings.bytes_split(["ab", "", "c"]),
    tf.strings.bytes_split("ab"),
    tf.strings.unicode_decode(["aä", "", "x"], "UTF-8"),
    tf.strings.unicode_decode("aä", "UTF-8"),
    tf.strings.unicode_decode([["aä"], ["b"]], "UTF-8"),
    tf.strings.unicode_split(["aä", "", "x"], "UTF-8"),
    *tf.strings.unicode_split_with_offsets(["aä€x"], "UTF-8"),
    tf.strings.unicode_encode(tf.ragged.constant([[97, 228], [], [98]]), "UTF-8"),
    tf.strings.unicode_encode([97, 228], "UTF-8"),
]
KEYS = [
    (ROWS, 0),
    (ROWS, -1),
    (ROWS, slice(1, None)),
    (ROWS, slice(None, -1)),
    (ROWS, slice(2, 2)),
    (ROWS, slice(None, None, 2)),
    (ROWS, slice(None, None, -1)),
    (ROWS, (slice(None), slice(1, 3))),
    (ROWS, (slice(None), slice(-2, None))),
    (ROWS, (slice(None), slice(None, None, -1))),
    (ROWS, (slice(None), slice(None, None, 2))),
    (ROWS, (2, slice(1, 3))),
    (ROWS, (0, 1)),
    (ROWS, None),
    (ROWS, (slice(None), None)),
    (DEEP, 0),
    (DEEP, (2, 0)),
    (DEEP, (2, 0, 1)),
    (DEEP, (slice(None), slice(None, 1))),
    (DEEP, (slice(None), slice(None), slice(None, 2))),
    (DEEP, (Ellipsis, slice(1, None))),
]
MAKING["indices"] = lambda tf: [tf.ragged.constant(rows)[key] for rows, key in KEYS]


@pytest.mark.parametrize("name", MAKING)
def test_the_values_are_tensorflows(name):
    ours, theirs = (fetched(tf, MAKING[name]) for tf in (runnel, tensorflow()))
    for position, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == b, position


def test_a_ragged_tensor_is_fed_and_fetched():
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.ragged.placeholder(tf.int32, ragged_rank=2, value_shape=())
            value = tf.ragged.constant_value(DEEP, np.int32)
            found = sess.run({"twice": x * 2, "same": x}, {x: value})
            assert found["same"].to_list() == DEEP
            assert found["twice"].to_list() == [[[2 * v for v in r] for r in m] for m in DEEP]
            assert isinstance(found["same"], tf.ragged.RaggedTensorValue)


def test_gradients_flow_through_rows():
    found = []
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.constant(np.arange(6, dtype=np.float32))
            rt = tf.RaggedTensor.from_row_splits(x, [0, 2, 2, 6])
            outputs = [
                tf.square(rt.to_tensor(1.5)),
                tf.square(tf.gather(rt, [2, 0, 2]).flat_values),
                tf.square(tf.reduce_sum(rt, axis=1)),
                tf.square(rt[:, :2].flat_values),
            ]
            grads = [tf.convert_to_tensor(tf.gradients(y, x)[0]) for y in outputs]
            found.append(sess.run(grads))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs)


REFUSED = {
    "splits": lambda tf: tf.RaggedTensor.from_row_splits([1, 2], [0, 3]).to_tensor(),
    "decreasing": lambda tf: tf.RaggedTensor.from_row_splits([1, 2], [0, 2, 1, 2]).to_tensor(),
    "other rows": lambda tf: tf.ragged.constant([[1], [2]]) + tf.ragged.constant([[1, 2]]),
    "column": lambda tf: tf.ragged.constant(ROWS)[:, 0],
    "depths": lambda tf: tf.ragged.constant([1, [2]]),
    "no such row": lambda tf: tf.gather(tf.ragged.constant(ROWS), [7]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, tensorflow()):
        refusal = pytest.raises((tf.errors.InvalidArgumentError, ValueError))
        with tf.Graph().as_default(), tf.Session() as sess, refusal:
            sess.run(REFUSED[name](tf))


OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_tensors_on_either_side_are_tensorflows(name):
    operate = OPERATORS[name]

    def build(tf):
        ragged, tensor = tf.ragged.constant([[1.0, 2.5], [], [3.0]]), tf.constant(2.5)
        return [operate(ragged, tensor).values, operate(tensor, ragged).values]

    assert_same_fetches(build)
