"""Interpreted steps that have run often: Python written for them."""

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.interpret import interpreted_segment, verification, written_code
from tests.both_tiers import INTERPRETED, session


@pytest.fixture(autouse=True)
def _written_soon(monkeypatch):
    monkeypatch.setattr(interpreted_segment, "_OFTEN", 1)
    monkeypatch.setattr(verification, "enabled", False)


def run_often(sess, fetches, feeds=None):
    """The results of a run in which everything is written."""
    for _ in range(8):
        results = sess.run(fetches, feeds)
    return results


def written(sess):
    """The pieces of the newest step, each as whether it is written."""
    (runner,) = list(sess._prepared.values())[-1].plan.schedule.runners
    code = runner._interpreted._plain._written
    return [] if code is None else [p.run != p._interpret for p in code._pieces]


def test_numbers_arrays_and_several_outputs_are_written(monkeypatch):
    monkeypatch.setattr(written_code, "PIECE", 3)
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [4])
    parts = tf.split(y * x + 1.0, 2)
    total = tf.negative(tf.identity(parts[0])) * parts[1] + x
    less = tf.logical_not(x * 2.0 - 1.0 < x)
    with session(INTERPRETED) as sess:
        for a in (0.5, 3.0):
            b = np.arange(4, dtype=np.float32)
            found = run_often(sess, [total, parts[1], less], {x: a, y: b})
            halves = np.split(b * a + 1, 2)
            np.testing.assert_allclose(found[0], -halves[0] * halves[1] + a)
            np.testing.assert_allclose(found[1], halves[1])
            assert found[2] == (a * 2 - 1 >= a) and found[2].dtype == bool
        assert len(written(sess)) > 1 and all(written(sess))


def test_arrays_that_others_hold_are_not_overwritten():
    x = tf.placeholder(tf.float32, [3])
    doubled = x + x
    view = tf.reshape(doubled, [3, 1])
    kept = tf.identity(doubled)
    more = tf.negative(tf.exp(doubled * 2.0 + x) + doubled)
    with session(INTERPRETED) as sess:
        fed = np.array([1, -2, 3], np.float32)
        found = run_often(sess, [more, view, kept, x], {x: fed})
        assert all(written(sess))
    two = 2 * fed
    expected = [-(np.exp(two * 2 + fed) + two), two[:, None], two, fed]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_array_equal(fed, [1, -2, 3])


@pytest.mark.parametrize("seed", range(10))
def test_an_array_that_is_overwritten_keeps_its_place_among_the_others(seed):
    chosen = np.random.default_rng(seed)
    fed = [chosen.random((4, 3), np.float32) for _ in range(2)]
    tensors = [tf.placeholder(tf.float32, [4, 3]) for _ in fed]
    feeds = dict(zip(tensors, fed, strict=True))
    expected = list(fed)
    for _ in range(40):
        a, b = (int(chosen.integers(max(0, len(tensors) - back), len(tensors))) for back in (3, 8))
        of_tensors, of_arrays = [
            (tf.subtract, np.subtract),
            (tf.minimum, np.minimum),
            (lambda x, y: tf.negative(x), lambda x, y: -x),
            (lambda x, y: tf.tanh(tf.reverse(y, [0])), lambda x, y: np.tanh(y[::-1])),
        ][chosen.integers(4)]
        tensors.append(of_tensors(tensors[a], tensors[b]))
        expected.append(of_arrays(expected[a], expected[b]))
    fetched = [*chosen.integers(0, len(tensors), 2).tolist(), len(tensors) - 1]
    with session(INTERPRETED) as sess:
        found = run_often(sess, [tensors[i] for i in fetched], feeds)
        assert all(written(sess))
    for value, i in zip(found, fetched, strict=True):
        np.testing.assert_allclose(value, expected[i], rtol=1e-6)


def test_whole_numbers_wrap_around_silently():
    x = tf.placeholder(tf.int32, [])
    with session(INTERPRETED) as sess:
        assert run_often(sess, x * x + x, {x: 2**30}) == np.int32(2**30)
        assert all(written(sess))


def test_variables_are_read_and_stored():
    count = tf.Variable(0)
    weights = tf.Variable(tf.ones([2]))
    step = tf.group(count.assign_add(1), weights.assign(weights * 2.0))
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        for n in range(1, 9):
            sess.run(step)
            assert sess.run(count) == n
            np.testing.assert_array_equal(sess.run(weights), [2.0**n] * 2)


def test_random_streams_move_on():
    tf.set_random_seed(1)
    draw = tf.random_uniform([2], seed=4) + 1.0
    with session(INTERPRETED) as sess:
        first = [sess.run(draw) for _ in range(8)]
        assert all(written(sess))
    with session(INTERPRETED) as sess, pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreted_segment, "_OFTEN", 1000)
        second = [sess.run(draw) for _ in range(8)]
    np.testing.assert_array_equal(first, second)


def test_an_error_names_the_operation_and_its_inputs():
    x = tf.placeholder(tf.float32, None)
    y = tf.placeholder(tf.float32, None)
    product = tf.matmul(x + 1.0, y, name="wrong")
    with session(INTERPRETED) as sess:
        run_often(sess, product, {x: np.ones((2, 3)), y: np.ones((3, 2))})
        assert all(written(sess))
        with pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible") as caught:
            sess.run(product, {x: np.ones((2, 3)), y: np.ones((2, 2))})
        assert caught.value.op is product.op
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"float32 \(3,\) and") as caught:
            sess.run(product, {x: np.ones(3), y: np.ones((2, 2))})
        assert caught.value.op is product.op


def test_a_step_with_a_deadline_or_a_trace_is_watched_as_before():
    x = tf.placeholder(tf.float32, [])
    y = tf.square(x) + x
    with session(INTERPRETED) as sess:
        run_often(sess, y, {x: 2.0})
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=10_000)
        metadata = tf.RunMetadata()
        assert sess.run(y, {x: 3.0}, options, metadata) == 12.0
        names = [n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats]
        assert y.op.name in names
