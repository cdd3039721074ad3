"""Steps in which some shapes change all the time and others, with most of the work, do not."""

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import compiler
from runnel.runtime.segment import changing_shapes, compile_cost, tier_choice, tier_trial
from tests.both_tiers import INTERPRETED, await_compilations, session


@pytest.fixture(autouse=True)
def everything_is_hot(monkeypatch):
    """What may be compiled is, soon, and stays so; whatever keeps its shapes is worth it."""
    monkeypatch.setattr(tier_choice, "_SHARE", 0.0)
    monkeypatch.setattr(compile_cost, "_IMPORT_SECONDS", 0.0)
    for name in ("_STALL_SECONDS", "_DISPATCH_SECONDS", "_DISPATCH_SECONDS_PER_ARRAY"):
        monkeypatch.setattr(tier_choice, name, 0.0)
    monkeypatch.setattr(tier_trial, "SLOWER", float("inf"))
    monkeypatch.setattr(changing_shapes, "_SHARE", 0.0)


def detector(limit=None):
    """Layers over a picture, and a loss over the boxes in it, however many there are."""
    picture = tf.placeholder(tf.float32, [None, 8, 8, 2])
    boxes = tf.placeholder(tf.float32, [None, 4])
    counter = tf.Variable(0.0, trainable=False)
    value = picture
    for number in range(3):
        window = tf.get_variable(f"window{number}", [3, 3, value.shape[-1].value, 4])
        value = tf.nn.relu(tf.nn.conv2d(value, window, [1, 1, 1, 1], "SAME"))
    guesses = tf.reshape(value, [-1, 4])
    distances = tf.reduce_sum(tf.square(guesses[:, None] - boxes[None]), 2)
    near = tf.reduce_min(distances, 0)
    loss = tf.reduce_sum(near) / tf.cast(tf.shape(boxes)[0], tf.float32) + tf.reduce_mean(guesses)
    if limit is not None:
        with tf.control_dependencies([tf.assert_less(near, limit, name="too_far")]):
            loss = tf.identity(loss)
    with tf.control_dependencies([counter.assign_add(1.0)]):
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    return picture, boxes, [train, loss, counter.read_value()]


def batches(count=40):
    rng = np.random.default_rng(0)
    for number in range(count):
        picture = rng.random([2, 8, 8, 2]).astype(np.float32)
        yield picture, rng.random([1 + number % 17, 4]).astype(np.float32)


def trained(level, batch_of_picture=batches):
    tf.set_random_seed(1)
    picture, boxes, fetches = detector()
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        found = []
        for number, (p, b) in enumerate(batch_of_picture()):
            if number == 25:
                await_compilations()  # so what is compiled runs in the rest
            found.append(sess.run(fetches, {picture: p, boxes: b})[1:])
        explained = str(sess.explain(fetches, [picture, boxes]))
        return found, sess.run(tf.global_variables()), explained


def test_what_keeps_its_shapes_is_compiled_apart():
    results = []
    for level in (INTERPRETED, 0):
        before = compiler.compilations
        with tf.Graph().as_default():
            results.append(trained(level))
    assert 0 < compiler.compilations - before < 10, "the pieces, and each of them once"
    (losses, variables, _), (found, left, explained) = results
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    for expected, value in zip(variables, left, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-5)
    assert "shapes change from step to step" in explained


def test_a_step_that_fails_in_what_changes_leaves_all_variables():
    tf.set_random_seed(1)
    limit = tf.placeholder(tf.float32, [])
    picture, boxes, fetches = detector(limit)
    with session(0) as sess:
        sess.run(tf.global_variables_initializer())
        for p, b in batches(30):
            sess.run(fetches, {picture: p, boxes: b, limit: 1e9})
        explained = str(sess.explain(fetches, [picture, boxes, limit]))
        before = sess.run(tf.global_variables())
        for p, b in batches(4):
            with pytest.raises(tf.errors.InvalidArgumentError, match="too_far"):
                sess.run(fetches, {picture: p, boxes: b, limit: -1.0})
        for value, expected in zip(sess.run(tf.global_variables()), before, strict=True):
            np.testing.assert_array_equal(value, expected)
        assert sess.run(fetches, {picture: p, boxes: b, limit: 1e9})[2] == before[0] + 1
    assert "shapes change from step to step" in explained


def test_a_step_whose_shapes_all_change_stays_whole(monkeypatch):
    monkeypatch.setattr(changing_shapes, "_SHARE", 0.5)

    def growing():
        for p, b in batches(20):
            yield np.concatenate([p] * (1 + len(b) % 9)), b

    explained = trained(0, growing)[2]
    assert "shapes change from step to step" not in explained


def test_values_that_shapes_depend_on_count_as_shapes():
    """A number that is fed says how far a picture is cut: its own shape does not change."""
    size = tf.placeholder(tf.int32, [])
    picture = tf.placeholder(tf.float32, [4, 16, 16, 1])
    window = tf.Variable(tf.ones([5, 5, 1, 8]))
    whole = tf.nn.conv2d(picture, window, [1, 1, 1, 1], "SAME")
    part = tf.reduce_sum(tf.slice(whole, [0, 0, 0, 0], tf.stack([4, size, size, 8])))
    values = np.random.default_rng(0).random([4, 16, 16, 1]).astype(np.float32)
    results = []
    for level in (INTERPRETED, 0):
        with session(level) as sess:
            sess.run(window.initializer)
            found = [sess.run(part, {picture: values, size: 1 + n % 15}) for n in range(40)]
            results.append(found)
            explained = str(sess.explain(part, [picture, size]))
    np.testing.assert_allclose(*results, rtol=1e-5)
    assert "shapes change from step to step" in explained
