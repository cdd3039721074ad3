"""Functions on sparse tensors give what TensorFlow's give, and the same gradients."""

from __future__ import annotations

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_fetches
from tests.conformance.side_by_side import compare, op_of

reference = pytest.importorskip("tensorflow").compat.v1

PLACES = [[0, 0], [0, 2], [1, 1], [3, 0]]
VALUES = np.array([1, 2, -3, 4], np.float32)
MORE = np.array([5, -2, 7], np.float32)
FULL = [[0, 0], [0, 2], [1, 1], [2, 0]]
OTHER = [[0, 1], [0, 2], [3, 0]]
DENSE = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32) + 3
TABLE = np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)


def one(tf, values=VALUES):
    return tf.SparseTensor(PLACES, values, [4, 3])


def other(tf, values=MORE):
    return tf.SparseTensor(OTHER, values, [4, 3])


def full(tf, places, values=VALUES):
    """With an element in each row."""
    return tf.SparseTensor(places, values, [3, 3])


def ids(tf):
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 2]], [3, 1, 3, 5], [4, 3])


def full_ids(tf):
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 2]], [3, 1, 3, 5], [3, 3])


def unknown(tf):
    """Coordinates that are not known beforehand."""
    places = np.array([[0, 0], [0, 1], [1, 0], [2, 2]])
    return tf.placeholder_with_default(places, [None, 2])


def cube(tf):
    return tf.SparseTensor([[0, 1, 1], [1, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], [2, 2, 3])


PROGRAMS = {
    "to_dense": lambda tf: [
        tf.sparse.to_dense(one(tf)),
        tf.sparse_tensor_to_dense(one(tf), default_value=7),
        tf.sparse.to_dense(tf.SparseTensor([[1]], ["a"], [3])),
        tf.sparse.to_dense(tf.SparseTensor([[1]], [True], [3])),
        tf.sparse_to_dense([1, 3], [5], 2),
    ],
    "from_dense": lambda tf: tf.sparse.from_dense([[0, 3], [4, 0]]),
    "indicator": lambda tf: tf.sparse_to_indicator(ids(tf), 7),
    "reorder": lambda tf: tf.sparse_reorder(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])),
    "reshape": lambda tf: [tf.sparse_reshape(one(tf), [2, -1]), tf.sparse_reshape(one(tf), [12])],
    "reshape to the same": lambda tf: [
        tf.sparse_reshape(one(tf), shape) for shape in ([4, 3], [4, -1], [-1, 3])
    ],
    "transpose": lambda tf: [
        tf.sparse_transpose(one(tf)),
        tf.sparse.transpose(cube(tf), [1, 2, 0]),
    ],
    "slice": lambda tf: tf.sparse_slice(one(tf), [0, 1], [4, 2]),
    "split": lambda tf: tf.sparse_split(sp_input=one(tf), num_split=2, axis=1),
    "concat": lambda tf: [
        tf.sparse_concat(0, [one(tf), other(tf)]),
        tf.sparse.concat(1, [one(tf), tf.SparseTensor([[5, 0]], [1.0], [6, 1])], None, True),
    ],
    "add": lambda tf: [
        tf.sparse_add(one(tf), other(tf)),
        tf.sparse_add(one(tf), other(tf), thresh=1.0),
        tf.sparse_add(one(tf), DENSE),
        tf.sparse_add(DENSE, one(tf)),
    ],
    "extrema": lambda tf: [
        tf.sparse_maximum(one(tf), other(tf)),
        tf.sparse_minimum(one(tf), other(tf)),
    ],
    "reduce": lambda tf: [
        tf.sparse_reduce_sum(one(tf)),
        tf.sparse_reduce_sum(cube(tf), axis=[0, -1]),
        tf.sparse_reduce_sum(cube(tf), axis=1, keepdims=True),
        tf.sparse_reduce_max(cube(tf), axis=1),
        tf.sparse_reduce_sum_sparse(cube(tf), axis=1, keepdims=True),
        tf.sparse_reduce_max_sparse(cube(tf), axis=[1]),
    ],
    "softmax": lambda tf: tf.sparse_softmax(cube(tf)),
    "matmul": lambda tf: [
        tf.sparse_tensor_dense_matmul(one(tf), DENSE[:3]),
        tf.sparse.matmul(one(tf), DENSE, adjoint_a=True),
        tf.sparse.matmul(DENSE.T, one(tf)),
    ],
    "retain": lambda tf: tf.sparse_retain(one(tf), [True, False, False, True]),
    "fill_empty_rows": lambda tf: tf.sparse_fill_empty_rows(one(tf), 9.0),
    "fill_empty_rows of which none is": lambda tf: [
        tf.sparse_fill_empty_rows(full(tf, places), 9.0) for places in (FULL, FULL[::-1])
    ],
    "reset_shape": lambda tf: [
        tf.sparse_reset_shape(one(tf)),
        tf.sparse_reset_shape(one(tf), [5, 3]),
    ],
    "merge": lambda tf: [
        tf.sparse_merge(
            tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2, 5, 0], [2, 2]),
            tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [0.5, 1.5, 2.5], [2, 2]),
            6,
        )
    ],
    "serialize": lambda tf: [
        tf.deserialize_many_sparse(tf.serialize_many_sparse(one(tf)), tf.float32),
        tf.serialize_sparse(one(tf)),
    ],
    "expand_dims": lambda tf: [
        tf.sparse.expand_dims(one(tf)),
        tf.sparse.expand_dims(one(tf), 0),
        tf.sparse.expand_dims(one(tf), -2),
    ],
    "eye": lambda tf: [tf.sparse.eye(2), tf.sparse.eye(2, 3, tf.int32)],
    "operators": lambda tf: [one(tf) * DENSE, one(tf) / DENSE[:1]],
    "segments": lambda tf: [
        f(TABLE, [0, 3, 1], [0, 0, 2])
        for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)
    ],
    "mask": lambda tf: tf.sparse_mask(
        tf.IndexedSlices(tf.constant(TABLE[:3]), tf.constant([5, 7, 2])), [7]
    ),
    "embedding": lambda tf: [
        tf.nn.embedding_lookup_sparse(TABLE, full_ids(tf), None, combiner=combiner)
        for combiner in ("sum", "mean", "sqrtn")
    ],
    "weighted embedding": lambda tf: [
        tf.nn.embedding_lookup_sparse(
            [tf.constant(TABLE[:3]), tf.constant(TABLE[3:])],
            full_ids(tf),
            tf.SparseTensor(full_ids(tf).indices, [0.5, 2.0, 1.0, 3.0], [3, 3]),
            combiner=combiner,
        )
        for combiner in ("sum", "mean", "sqrtn")
    ],
    "safe embedding": lambda tf: [
        tf.nn.safe_embedding_lookup_sparse(
            tf.constant(TABLE),
            tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([3, -1, 5], tf.int64), [4, 3]),
            weights(tf) if weighted else None,
            default_id=default,
            combiner=combiner,
        )
        for weighted in (False, True)
        for default in (None, 2)
        for combiner in ("sum", "mean")
    ],
}


def weights(tf):
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 1.0, 0.0], [4, 3])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_values_are_the_same(name):
    assert_same_fetches(PROGRAMS[name])


GRADIENTS = {
    "to_dense": (lambda tf, v: tf.sparse.to_dense(one(tf, v)), VALUES),
    "default": (lambda tf, d: tf.sparse_to_dense(PLACES, [4, 3], VALUES, d), np.float32(2)),
    "reorder": (
        lambda tf, v: tf.sparse_reorder(tf.SparseTensor(PLACES[::-1], v, [4, 3])).values,
        VALUES,
    ),
    "slice": (lambda tf, v: tf.sparse_slice(one(tf, v), [0, 1], [4, 2]).values, VALUES),
    "add": (lambda tf, a, b: tf.sparse_add(one(tf, a), other(tf, b)).values, VALUES, MORE),
    "dense add": (lambda tf, v, d: tf.sparse_add(one(tf, v), d), VALUES, DENSE),
    "sum": (lambda tf, v: tf.sparse_reduce_sum(one(tf, v), 1), VALUES),
    "sum, dimensions kept": (
        lambda tf, v: tf.sparse_reduce_sum(one(tf, v), [-2], keepdims=True),
        VALUES,
    ),
    "softmax": (lambda tf, v: tf.sparse_softmax(one(tf, v)).values, VALUES),
    "times": (lambda tf, v, d: (one(tf, v) * d).values, VALUES, DENSE),
    "over": (lambda tf, v, d: (one(tf, v) / d).values, VALUES, DENSE[0]),
    "fill_empty_rows": (
        lambda tf, v, d: tf.sparse_fill_empty_rows(one(tf, v), d)[0].values,
        VALUES,
        np.float32(3),
    ),
    "fill_empty_rows of which none is": (
        lambda tf, v, d: tf.sparse_fill_empty_rows(full(tf, FULL, v), d)[0].values,
        VALUES,
        np.float32(3),
    ),
    "fill_empty_rows of which none is, out of order": (
        lambda tf, v, d: tf.sparse_fill_empty_rows(full(tf, FULL[::-1], v), d)[0].values,
        VALUES,
        np.float32(3),
    ),
}
for a in (False, True):
    for b in (False, True):
        right = DENSE if a else DENSE[:3]
        GRADIENTS[f"matmul {a} {b}"] = (
            lambda tf, v, d, a=a, b=b: tf.sparse.matmul(one(tf, v), d, adjoint_a=a, adjoint_b=b),
            VALUES,
            right.T.copy() if b else right,
        )
for name in ("sum", "mean", "sqrt_n"):
    GRADIENTS[f"segment_{name}"] = (
        lambda tf, t, name=name: getattr(tf, f"sparse_segment_{name}")(t, [0, 3, 0], [0, 0, 2]),
        TABLE,
    )
    GRADIENTS[f"segment_{name}, counted"] = (
        lambda tf, t, name=name: getattr(tf, f"sparse_segment_{name}")(
            t, [0, 3, 0], [0, 0, 2], num_segments=4
        ),
        TABLE,
    )
for combiner in ("sum", "mean", "sqrtn"):
    GRADIENTS[f"embedding, {combiner}"] = (
        lambda tf, t, w, combiner=combiner: tf.nn.embedding_lookup_sparse(
            t,
            tf.SparseTensor(unknown(tf), [3, 1, 3, 5], [3, 3]),
            tf.SparseTensor(unknown(tf), w, [3, 3]),
            combiner=combiner,
        ),
        TABLE,
        np.array([0.5, 2, 1, 3], np.float32),
    )


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_gradients_are_the_same(name):
    build, *arrays = GRADIENTS[name]
    compare(build, *arrays)


def test_sparse_tensors_are_fed_and_fetched():
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.sparse_placeholder(tf.float32, name="x")
            y = tf.sparse_placeholder(tf.float32, [None, 3])
            z = tf.sparse_placeholder(tf.float32, [4, 3])
            total = tf.sparse_add(tf.sparse_add(x, y), z)
            assert [d.value for d in z.get_shape().dims] == [4, 3]
            value = tf.SparseTensorValue(np.array(PLACES), VALUES, np.array([4, 3]))
            given = (PLACES, VALUES, [4, 3])
            found.append(sess.run([x, total], {x: value, y: given, z: sess.run(one(tf))}))
            assert isinstance(found[-1][0], tf.SparseTensorValue)
            assert tf.convert_to_tensor_or_sparse_tensor(value).get_shape().as_list() == [4, 3]
    for ours, theirs in zip(*found, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_branch_and_a_loop_carry_sparse_tensors():
    def build(tf):
        chosen = tf.cond(tf.constant(True), lambda: one(tf), lambda: other(tf))
        looped = tf.while_loop(
            lambda i, s: i < 3,
            lambda i, s: (i + 1, tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)),
            [tf.constant(0), one(tf)],
        )[1]
        return [chosen, looped]

    assert_same_fetches(build)


def raw(tf, name, *inputs):
    """An operation whose inputs have shapes that are not known beforehand."""
    hidden = [tf.placeholder_with_default(np.asarray(x), None) for x in inputs]
    return op_of(tf, name)(*hidden)


GRID = np.array([4, 3], np.int64)

REFUSED = {
    "fewer values than places": lambda tf: raw(
        tf, "SparseTensorDenseMatMul", np.array(PLACES), VALUES[:1], GRID, DENSE[:3]
    ),
    "places without columns": lambda tf: raw(
        tf, "SparseTensorDenseMatMul", np.array([0, 1, 1, 3]), VALUES, GRID, DENSE[:3]
    ),
    "another shape": lambda tf: raw(
        tf, "SparseTensorDenseAdd", np.array(PLACES), VALUES, GRID + 1, DENSE
    ),
    "values for other places": lambda tf: raw(
        tf, "SparseDenseCwiseMul", np.array(PLACES), VALUES[:2], GRID, DENSE
    ),
    "gradients for other places": lambda tf: raw(
        tf, "SparseAddGrad", VALUES[:3], np.array(PLACES), np.array(OTHER), np.array(OTHER)[:2]
    )[0],
    "out of order": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[1], [0]], [1, 2], [3])),
    "repeated": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[1], [1]], [1, 2], [3])),
    "out of bounds": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[3]], [1], [3])),
    "other size": lambda tf: tf.sparse_reshape(one(tf), [5]).indices,
    "sizes differ": lambda tf: tf.sparse_add(one(tf), tf.SparseTensor([[0]], [1.0], [3])).values,
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, reference):
        refusal = pytest.raises((tf.errors.InvalidArgumentError, ValueError))
        with tf.Graph().as_default(), tf.Session() as sess, refusal:
            sess.run(REFUSED[name](tf))


CROSSED = {
    "crosses": lambda tf: [
        tf.sparse.cross([tf.constant([["a"], ["b"]]), tf.constant([["x", "y"], ["z", "w"]])]),
        tf.sparse.cross([tf.sparse.from_dense([["x", ""], ["z", "w"]]), tf.constant([[1], [2]])]),
        tf.sparse.cross_hashed(
            [tf.constant([["a"], ["b"]]), tf.constant([["x", "y"], ["z", "w"]])]
        ),
        tf.sparse.cross_hashed([tf.constant([[1], [-2]]), tf.constant([["x"], ["z"]])], 100),
        tf.sparse.cross_hashed([tf.constant([[1], [2]]), tf.constant([[3], [4]])], 7, hash_key=11),
    ],
    "sets": lambda tf: [
        tf.sets.union([[1, 2], [3, 3]], [[2, 4], [5, 3]]),
        tf.sets.difference([[1, 2], [3, 3]], tf.sparse.from_dense([[2, 4], [5, 3]])),
        tf.sets.difference([[1, 2], [3, 3]], [[2, 4], [5, 3]], aminusb=False),
        tf.sets.set_intersection(tf.sparse.from_dense([[1, 2], [3, 3]]), [[2, 4], [5, 3]]),
        tf.sets.size(tf.sparse.from_dense([["a", "b"], ["c", "c"]])),
    ],
    "distances": lambda tf: [
        tf.edit_distance(tf.sparse.from_dense(a), tf.sparse.from_dense(b), normalize=normalize)
        for a, b in (([["a", "b", ""]], [["a", "c", "d"]]), ([[1, 2], [0, 0]], [[0, 0], [3, 0]]))
        for normalize in (True, False)
    ],
}


@pytest.mark.parametrize("name", CROSSED)
def test_crosses_sets_and_distances_are_the_same(name):
    assert_same_fetches(CROSSED[name])


def test_operators_with_dense_tensors_are_tensorflows():
    row, number = DENSE[:1], np.float32(2.5)

    def build(tf):
        tensor = tf.constant
        found = [one(tf) * DENSE, one(tf) * tensor(row), tensor(DENSE) * one(tf)]
        found += [one(tf) / tensor(number), one(tf) * 3.0, tensor(number) * one(tf)]
        return [tuple(sparse.values for sparse in found), found[0].indices, found[0].dense_shape]

    assert_same_fetches(build)
