"""Sparse updates of variables, interpreted and compiled, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session

TIERS = pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
KINDS = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
START = np.arange(1, 13).reshape(4, 3)

COMBINE = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "mul": lambda old, new: old * new,
    "div": lambda old, new: old / new,
    "min": np.minimum,
    "max": np.maximum,
}


def expected(method, start, places, updates):
    """One by one, as the definition says."""
    out = start.astype(np.float64)
    for place, update in zip(places, updates, strict=True):
        out[place] = COMBINE[method](out[place], np.asarray(update, np.float64))
    return out


@KINDS
@pytest.mark.parametrize("method", COMBINE)
def test_rows(method, resource):
    v = tf.Variable(START.astype(np.float32), use_resource=resource)
    indices = [3, 1] if method == "update" else [3, 1, 3]
    updates = np.array([[2, 20, 4], [5, 0.5, 7], [3, 1, 2]], np.float32)[: len(indices)]
    new = getattr(tf, f"scatter_{method}")(v, indices, updates)
    value = run_both(tf.identity(new), init=tf.global_variables_initializer())
    np.testing.assert_allclose(value, expected(method, START, indices, updates), rtol=1e-6)


@KINDS
def test_indices_of_any_shape_and_scalar_updates(resource):
    v = tf.Variable(START, use_resource=resource)
    new = tf.scatter_sub(v, [[0, 1], [2, 0]], np.int64(2))
    value = run_both(tf.identity(new), init=tf.global_variables_initializer())
    np.testing.assert_array_equal(value, START - np.array([[4], [2], [2], [0]]))


@pytest.mark.parametrize(
    "kind",
    [
        np.float16,
        ml_dtypes.bfloat16,
        np.float64,
        np.int8,
        np.uint8,
        np.int32,
        np.int64,
        np.complex64,
    ],
)
@pytest.mark.parametrize("method", ["update", "add", "sub", "mul"])
def test_element_types(method, kind):
    v = tf.Variable(START.astype(kind))
    updates = np.full((2, 3), 2).astype(kind)
    new = getattr(tf, f"scatter_{method}")(v, [2, 3], updates)
    value = run_both(tf.identity(new), init=tf.global_variables_initializer())
    assert value.dtype == np.dtype(kind)
    want = expected(method, START, [2, 3], np.full((2, 3), 2))
    np.testing.assert_array_equal(value.real.astype(np.float64), want)


def test_integers_are_divided_towards_zero():
    v = tf.Variable([7, -7, 100, -100])
    new = tf.scatter_div(v, [0, 1, 2, 2, 3], [2, 2, 3, 3, -7])
    value = run_both(tf.identity(new), init=tf.global_variables_initializer())
    np.testing.assert_array_equal(value, [3, -3, 11, 14])


@KINDS
@pytest.mark.parametrize("method", ["update", "add", "sub", "min", "max"])
def test_elements_and_rows_by_several_indices(method, resource):
    start = START.reshape(2, 2, 3)
    v = tf.Variable(start, use_resource=resource)
    cases = [
        ([[0, 1, 2], [1, 0, 0]], [50, -50]),
        ([[1, 1]], [[3, 30, 3]]),
        ([[0]], [[[9] * 3] * 2]),
    ]
    want = start.copy()
    changes = []
    for indices, updates in cases:
        value = np.array(updates, np.int64)
        changes.append(getattr(v, f"scatter_nd_{method}")(indices, value))
        want = expected(method, want, [tuple(i) for i in indices], value)
    init = tf.global_variables_initializer()
    for tier in (INTERPRETED, COMPILED):
        with session(tier) as sess:
            sess.run(init)
            for change in changes:
                sess.run(change)
            np.testing.assert_array_equal(sess.run(v), want)


@KINDS
def test_batches(resource):
    v = tf.Variable(START, use_resource=resource)
    delta = tf.IndexedSlices(
        tf.constant([[70], [80], [90], [60]], tf.int64), tf.constant([[0], [2], [1], [1]])
    )
    new = v.batch_scatter_update(delta)
    value = run_both(tf.identity(new), init=tf.global_variables_initializer())
    want = START.copy()
    want[[0, 1, 2, 3], [0, 2, 1, 1]] = [70, 80, 90, 60]
    np.testing.assert_array_equal(value, want)


@TIERS
@KINDS
def test_an_index_out_of_range_changes_nothing(tier, resource):
    v = tf.Variable(START, use_resource=resource)
    other = tf.Variable(0, use_resource=resource)
    row, place = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [1, 2])
    count = other.assign_add(1)
    steps = [
        ([count, tf.scatter_add(v, row, tf.ones([2, 3], tf.int64))], {row: [1, 4]}, "4"),
        ([count, tf.scatter_update(v, row, tf.ones([2, 3], tf.int64))], {row: [-1, 0]}, "-1"),
        ([count, tf.scatter_nd_add(v, place, [np.int64(1)])], {place: [[0, 3]]}, "3"),
    ]
    with session(tier) as sess:
        sess.run(tf.global_variables_initializer())
        for fetches, feeds, named in steps:
            with pytest.raises(tf.errors.InvalidArgumentError, match=named):
                sess.run(fetches, feeds)
            np.testing.assert_array_equal(sess.run(v), START)
            assert sess.run(other) == 0


def test_shapes_are_checked_when_the_graph_is_built():
    v = tf.Variable(START)
    r = tf.Variable(START, use_resource=True)
    for variable in (v, r):
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            tf.scatter_add(variable, [0, 1], tf.zeros([2, 2], tf.int64))
        with pytest.raises(ValueError, match=r"\(1, 3\)"):
            tf.scatter_nd_add(variable, [[0]], tf.zeros([2, 3], tf.int64))
        with pytest.raises(ValueError, match="2 dimensions"):
            tf.scatter_nd_add(variable, [[0, 0, 0]], tf.zeros([1], tf.int64))
    with pytest.raises(ValueError, match="scalar"):
        tf.scatter_add(tf.Variable(1.0), [0], [1.0])


def test_updates_of_a_large_table_touch_few_rows():
    """The compiled update is made in place: its cost does not grow with the table."""
    v = tf.Variable(tf.zeros([1_000_000, 4]))
    update = tf.scatter_add(v, [5, 999_999], tf.ones([2, 4])).op
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(update)
        rows = sess.run(tf.gather(v, [5, 999_999, 0]))
    np.testing.assert_array_equal(rows, [[3] * 4, [3] * 4, [0] * 4])
