"""Gradients of tables of which loops and branches gather rows: they stay sparse."""

import numpy as np
import pytest

import runnel as tf

ROWS, WIDTH = 50, 3


def table_of(kind):
    values = np.linspace(-1, 1, ROWS * WIDTH).reshape(ROWS, WIDTH)
    if kind == "tensor":
        return tf.identity(tf.constant(values))
    return tf.Variable(values, use_resource=kind == "resource")


def loop(n, step, start):
    return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start])[1]


def lookup(table, words):
    """An embedding lookup in every step of a recurrence."""
    count = tf.shape(words)[0]
    state = tf.zeros([2, WIDTH], tf.float64)
    return loop(count, lambda i, s: tf.tanh(s + tf.gather(table, words[i])), state)


def nested_lookup(table, words):
    def outer(i, s):
        row = words[i]
        return loop(2, lambda j, t: t + s * tf.gather(table, row[j]), s)

    return loop(tf.shape(words)[0], outer, tf.ones([WIDTH], tf.float64) * 0.1)


def lookup_in_branch(table, words):
    def step(i, s):
        taken = tf.equal(i % 2, 0)
        return s + tf.cond(taken, lambda: s * tf.gather(table, words[i]), lambda: tf.sin(s))

    return loop(tf.shape(words)[0], step, tf.ones([2, WIDTH], tf.float64) * 0.1)


def branch_outside_the_loop(table, words):
    return tf.cond(
        words[0, 0] >= 0, lambda: lookup(table, words), lambda: tf.zeros([2, WIDTH], tf.float64)
    )


def different_numbers_of_rows(table, words):
    flat = tf.reshape(words, [-1])
    return loop(
        3,
        lambda i, s: s + tf.reduce_sum(tf.gather(table, flat[: i + 1]), 0) * s,
        tf.ones([WIDTH], tf.float64) * 0.1,
    )


PROGRAMS = [
    lookup, nested_lookup, lookup_in_branch, branch_outside_the_loop, different_numbers_of_rows
]  # fmt: skip
WORDS = np.array([[3, 7], [7, 0], [4, 3]], np.int32)


def dense(slices):
    found = np.zeros([ROWS, WIDTH])
    np.add.at(found, slices.indices, slices.values)
    return found


def numeric(sess, y, table, words):
    """The derivatives of the sum of ``y`` by the rows that ``WORDS`` names."""
    found = np.zeros([ROWS, WIDTH])
    start = sess.run(table)
    for row in np.unique(WORDS):
        for column in range(WIDTH):
            sides = []
            for step in (-1e-6, 1e-6):
                changed = start.copy()
                changed[row, column] += step
                table.load(changed, sess)
                sides.append(np.sum(sess.run(y, {words: WORDS})))
            found[row, column] = (sides[1] - sides[0]) / 2e-6
    table.load(start, sess)
    return found


@pytest.mark.parametrize("kind", ["reference", "resource"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_sparse_and_right(program, kind):
    with tf.Graph().as_default():
        table = table_of(kind)
        words = tf.placeholder(tf.int32, [None, 2])
        y = program(table, words)
        (grad,) = tf.gradients(y, table)
        assert isinstance(grad, tf.IndexedSlices)
        with tf.Session() as sess:
            sess.run(table.initializer)
            found = sess.run(grad, {words: WORDS})
            assert found.values.shape == (len(found.indices), WIDTH)
            assert len(found.indices) <= WORDS.size
            np.testing.assert_array_equal(found.dense_shape, [ROWS, WIDTH])
            np.testing.assert_allclose(dense(found), numeric(sess, y, table, words), atol=1e-7)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_nothing_of_the_size_of_the_table_is_made(program):
    with tf.Graph().as_default() as graph:
        table = tf.placeholder(tf.float64, [ROWS, WIDTH])
        words = tf.placeholder(tf.int32, [None, 2])
        y = program(table, words)
        before = len(graph.get_operations())
        tf.gradients(y, table)
        passes_on = ("Enter", "Switch", "Identity")
        made = [
            op.name
            for op in graph.get_operations()[before:]
            if op.type not in passes_on
            and any(t.shape.as_list() == [ROWS, WIDTH] for t in op.outputs if t.shape.ndims)
        ]
        assert made == []


def test_no_iterations_touch_no_rows():
    with tf.Graph().as_default():
        table = tf.placeholder(tf.float64, [None, None])
        words = tf.placeholder(tf.int32, [None, 2])
        (grad,) = tf.gradients(lookup(table, words), table)
        with tf.Session() as sess:
            found = sess.run(grad, {table: np.ones([5, WIDTH]), words: np.zeros([0, 2], np.int32)})
        assert found.values.shape == (0, WIDTH)
        assert found.indices.shape == (0,)


def test_the_second_derivative_of_a_lookup():
    with tf.Graph().as_default():
        table = tf.placeholder(tf.float64, [ROWS, WIDTH])
        words = tf.placeholder(tf.int32, [None, 2])
        (grad,) = tf.gradients(lookup(table, words), table)
        weighed = tf.reduce_sum(tf.square(grad.values))
        (second,) = tf.gradients(weighed, table)
        value = np.linspace(-1, 1, ROWS * WIDTH).reshape(ROWS, WIDTH)
        with tf.Session() as sess:
            found = sess.run(tf.convert_to_tensor(second), {table: value, words: WORDS})
            sides = []
            for step in (-1e-6, 1e-6):
                changed = value.copy()
                changed[3, 1] += step
                sides.append(sess.run(weighed, {table: changed, words: WORDS}))
        assert found[3, 1] == pytest.approx((sides[1] - sides[0]) / 2e-6, rel=1e-5)
        assert np.abs(found[3]).max() > 0.01


def test_a_table_chosen_by_a_condition():
    with tf.Graph().as_default():
        one, other = tf.zeros([ROWS, 2]), tf.ones([ROWS, 2])
        p = tf.placeholder(tf.bool, [])
        table = tf.cond(p, lambda: one * 1.0, lambda: other * 1.0)
        chosen = tf.cond(p, lambda: one, lambda: other)
        (through,) = tf.gradients(tf.gather(table, [1, 1]), one)
        (direct,) = tf.gradients(tf.gather(chosen, [1, 1]), one)
        assert isinstance(direct, tf.IndexedSlices)
        with tf.Session() as sess:
            for taken in (True, False):
                expected = np.zeros([ROWS, 2])
                expected[1] = 2 if taken else 0
                for grad in (through, direct):
                    value = sess.run(tf.convert_to_tensor(grad), {p: taken})
                    np.testing.assert_array_equal(value, expected)


def test_sparse_and_dense_uses_add_up():
    with tf.Graph().as_default():
        table = tf.constant(np.ones([4, 2]))
        y = loop(
            3, lambda i, s: s + tf.gather(table, i) + tf.reduce_sum(table), tf.zeros([2], "float64")
        )
        (grad,) = tf.gradients(y, table)
        with tf.Session() as sess:
            np.testing.assert_allclose(sess.run(grad), [[7, 7], [7, 7], [7, 7], [6, 6]])
