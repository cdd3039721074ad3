"""tf.TensorArray, and the loops over slices that are made with it."""

import numpy as np
import pytest

import runnel as tf
from tests.finite_differences import assert_derivatives


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetches, feed_dict=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed_dict)


def test_written_in_a_loop_and_stacked():
    array = tf.TensorArray(tf.float32, size=4)
    _, array = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, a: (i + 1, a.write(i, tf.fill([2], tf.cast(i, tf.float32)))),
        [0, array],
    )
    stacked = array.stack()
    assert stacked.shape.as_list() == [4, 2]
    np.testing.assert_array_equal(run(stacked), [[0, 0], [1, 1], [2, 2], [3, 3]])


def test_each_step_has_an_array_of_its_own():
    array = tf.TensorArray(tf.int32, size=1).write(0, 5)
    value = array.read(0)
    with tf.Session() as sess:
        assert [sess.run(value) for _ in range(3)] == [5, 5, 5]


def test_a_dynamic_size_grows():
    array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    _, array = tf.while_loop(
        lambda i, _: i < 5, lambda i, a: (i + 1, a.write(i, i * i)), [0, array]
    )
    assert run(array.size()) == 5
    np.testing.assert_array_equal(run(array.stack()), [0, 1, 4, 9, 16])


def test_scatter_gather_split_concat():
    array = tf.TensorArray(tf.int32, size=3).scatter([2, 0, 1], [[1], [2], [3]])
    np.testing.assert_array_equal(run(array.gather([0, 2])), [[2], [1]])
    pieces = tf.TensorArray(tf.int32, size=2, infer_shape=False).split([1, 2, 3], [1, 2])
    np.testing.assert_array_equal(run(pieces.read(1)), [2, 3])
    np.testing.assert_array_equal(run(pieces.concat()), [1, 2, 3])


def test_joining_no_elements_of_known_shape():
    array = tf.TensorArray(tf.float32, size=0, element_shape=[None, 3])
    again = tf.TensorArray(tf.float32, handle=array.handle, flow=array.flow, infer_shape=False)
    assert run(again.concat()).shape == (0, 3)


def test_in_a_branch():
    array = tf.TensorArray(tf.float32, size=1)
    p = tf.placeholder(tf.bool, [])
    written = tf.cond(p, lambda: array.write(0, 1.0), lambda: array.write(0, 2.0))
    value = written.read(0)
    with tf.Session() as sess:
        assert [sess.run(value, {p: taken}) for taken in (True, False)] == [1.0, 2.0]


class TestMistakes:
    def failure(self, match):
        return pytest.raises(tf.errors.InvalidArgumentError, match=match)

    def test_places_out_of_range(self):
        array = tf.TensorArray(tf.int32, size=2)
        with self.failure("not resizeable"):
            run(array.write(2, 1).flow)
        with self.failure("array size is: 2"):
            run(array.read(7))

    def test_written_or_read_twice(self):
        array = tf.TensorArray(tf.int32, size=2).write(0, 1)
        with self.failure("already been written"):
            run(array.write(0, 1).flow)
        once = array.read(0)
        with tf.control_dependencies([once]):
            twice = array.read(0)
        with self.failure("clear_after_read"):
            run(twice)

    def test_shapes_that_differ(self):
        array = tf.TensorArray(tf.int32, size=2).write(0, [1, 2])
        with pytest.raises(ValueError, match=r"Inconsistent shapes: saw \(3,\).*\(2,\)"):
            array.write(1, [1, 2, 3])

    def test_types_that_differ(self):
        with pytest.raises(TypeError, match="holds int32.*float32"):
            tf.TensorArray(tf.int32, size=2).write(0, tf.constant(1.0))

    def test_arguments(self):
        with pytest.raises(ValueError, match="Size must be provided"):
            tf.TensorArray(tf.int32)


# map_fn, foldl, foldr, scan ---------------------------------------------------------------------


def test_map_over_structures():
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    result = tf.map_fn(
        lambda pair: {"sum": pair[0] + pair[1], "count": tf.size(pair[0])},
        (tf.constant(x), tf.constant(y)),
        dtype={"sum": tf.float64, "count": tf.int32},
    )
    assert result["sum"].shape.as_list() == [3, 2]
    found = run(result)
    np.testing.assert_array_equal(found["sum"], x + y[:, None])
    np.testing.assert_array_equal(found["count"], [2, 2, 2])


def test_a_first_size_that_is_not_known():
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        y = tf.map_fn(lambda e: e * 2, x)
        for n in (1, 4):
            np.testing.assert_array_equal(sess.run(y, {x: np.ones(n)}), np.full(n, 2.0))


def step(s, e):
    return s * 0.5 + e


def test_folds_and_scans_are_what_python_computes():
    x = np.array([1.0, -2.0, 3.0, 0.5])
    forward, backward = [x[0]], [x[-1]]
    for e in x[1:]:
        forward.append(step(forward[-1], e))
    for e in x[-2::-1]:
        backward.append(step(backward[-1], e))
    given = 2.0
    for e in x:
        given = step(given, e)
    np.testing.assert_allclose(run(tf.foldl(step, x)), forward[-1])
    np.testing.assert_allclose(run(tf.foldr(step, x)), backward[-1])
    np.testing.assert_allclose(run(tf.scan(step, x)), forward)
    np.testing.assert_allclose(run(tf.scan(step, x, reverse=True)), backward[::-1])
    start = tf.constant(2.0, tf.float64)
    np.testing.assert_allclose(run(tf.foldl(step, x, initializer=start)), given)
    np.testing.assert_allclose(run(tf.scan(step, x, initializer=start))[-1], given)


def test_scan_over_structures():
    a, n = tf.scan(
        lambda s, e: (s[0] + e, s[1] * 2), tf.constant([1, 2, 3]), initializer=(0, tf.constant(1.0))
    )
    np.testing.assert_array_equal(run(a), [1, 3, 6])
    np.testing.assert_array_equal(run(n), [2, 4, 8])


def test_mistakes_of_functions_over_slices():
    with pytest.raises(TypeError, match="callable"):
        tf.map_fn(1, [1, 2])
    with pytest.raises(ValueError, match="scalar"):
        tf.map_fn(lambda x: x, 1.0)
    with pytest.raises(ValueError, match="different sizes"):
        tf.map_fn(lambda x: x[0], (np.ones(2), np.ones(3)), dtype=tf.float64)
    with pytest.raises(ValueError, match="same structure"):
        tf.map_fn(lambda x: (x, x), np.ones(2))


def rnn(x):
    """A small recurrent network over the rows of ``x``, with outputs of every step."""
    w = tf.constant([[0.3, -0.5], [0.2, 0.7]], tf.float64)
    outputs = tf.TensorArray(tf.float64, size=3)
    inputs = tf.TensorArray(tf.float64, size=3).unstack(x)

    def body(i, h, out):
        h = tf.tanh(tf.squeeze(tf.matmul(tf.expand_dims(h, 0), w), 0) + inputs.read(i))
        return i + 1, h, out.write(i, h * h)

    _, last, outputs = tf.while_loop(
        lambda i, *_: i < 3, body, (0, tf.zeros([2], tf.float64), outputs)
    )
    return tf.reduce_sum(outputs.stack(), 0) + last


GRADIENTS = {
    "map": lambda x: tf.map_fn(lambda e: tf.sin(e) * e, x),
    "foldl": lambda x: tf.foldl(lambda s, e: tf.sin(s) * e + s, x),
    "foldr": lambda x: tf.foldr(lambda s, e: tf.sin(s) * e + s, x),
    "scan": lambda x: tf.scan(lambda s, e: tf.sin(s) * e + s, x),
    "reversed scan": lambda x: tf.scan(
        lambda s, e: tf.sin(s) * e + s, x, initializer=x[0], reverse=True
    ),
    "fold in map": lambda x: tf.map_fn(
        lambda e: tf.foldl(lambda s, q: s + tf.sin(q * e * s), x), x
    ),
    "an element read by several": lambda x: tf.stack(
        [tf.TensorArray(x.dtype, 3, clear_after_read=False).unstack(x).read(i) for i in (0, 0, 2)]
    ),
    "split and concat": lambda x: (
        tf.TensorArray(x.dtype, 2, infer_shape=False).split(x * x, [1, 2]).concat()
    ),
    "recurrent network": rnn,
}


@pytest.mark.parametrize("program", GRADIENTS)
def test_gradients(program):
    x = [[0.5, 1.0], [-0.3, 0.2], [0.8, -0.6]]
    assert_derivatives(GRADIENTS[program], x, order=1, delta=1e-6, tolerance=1e-5)
