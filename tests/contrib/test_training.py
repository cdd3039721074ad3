"""``tf.contrib.training``: loops that train and evaluate, gradients, texts of hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import runnel as tf

training = tf.contrib.training


@pytest.fixture(autouse=True)
def close_writers():
    yield
    tf.summary.FileWriterCache.clear()


def trained(folder, steps, value=3.0):
    """A checkpoint of a variable after ``steps`` steps towards ``value``; the last loss."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=0.0)
        loss = tf.square(w - value)
        train_op = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.25), step)
        hooks = [tf.train.StopAtStepHook(num_steps=steps)]
        return training.train(train_op, str(folder), hooks=hooks, save_summaries_steps=None)


def test_training_goes_on_until_a_hook_stops_it(tmp_path):
    # Each step halves the distance, and gives the loss before it.
    assert trained(tmp_path, 3) == pytest.approx((3.0 / 4) ** 2)
    assert trained(tmp_path, 1) == pytest.approx((3.0 / 8) ** 2)
    with pytest.raises(ValueError, match="save_summaries_steps"):
        training.train(tf.no_op(), None)


def evaluated():
    """The mean of w + n over batches n = 1, 2, 3 ..., which steps of an evaluation make."""
    tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=-1.0)
    return tf.metrics.mean(w + tf.cast(training.get_or_create_eval_step(), tf.float32))


def test_an_evaluation_at_a_checkpoint_has_as_many_steps_as_asked_for(tmp_path):
    trained(tmp_path / "model", 1)
    value, update = evaluated()
    tf.summary.scalar("average", value)
    last = training.evaluate_once(
        tf.train.latest_checkpoint(str(tmp_path / "model")),
        eval_ops=update,
        final_ops={"mean": value, "steps": training.get_or_create_eval_step()},
        hooks=[
            training.StopAfterNEvalsHook(4),
            training.SummaryAtEndHook(str(tmp_path / "logs")),
        ],
    )
    assert last["steps"] == 4
    assert 1.5 <= last["mean"] <= 1.5 + 4
    events = EventAccumulator(str(tmp_path / "logs")).Reload()
    (written,) = events.Scalars("average")
    assert written.step == 1 and written.value == pytest.approx(last["mean"])


def test_an_evaluation_ends_with_its_input(tmp_path):
    trained(tmp_path, 1)
    tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=0.0)
    number = tf.data.Dataset.range(5).make_one_shot_iterator().get_next()
    value, update = tf.metrics.mean(tf.cast(number, tf.float32) + w)
    found = training.evaluate_once(
        tf.train.latest_checkpoint(str(tmp_path)), eval_ops=[update], final_ops=value
    )
    assert found == pytest.approx(2.0 + 1.5)


def test_each_checkpoint_is_evaluated(tmp_path):
    trained(tmp_path, 1)
    w = tf.get_variable("w", initializer=0.0)
    tf.train.get_or_create_global_step()
    seen = []

    class Watch(tf.train.SessionRunHook):
        def end(self, session):
            seen.append(float(session.run(w)))
            if len(seen) == 1:
                trained(tmp_path, 1)

    last = training.evaluate_repeatedly(
        str(tmp_path),
        final_ops=w,
        hooks=[Watch()],
        eval_interval_secs=0,
        max_number_of_evaluations=2,
    )
    assert seen == [1.5, 2.25] and last == 2.25


def test_waiting_for_checkpoints_ends_in_time(tmp_path):
    assert training.wait_for_new_checkpoint(str(tmp_path), timeout=0) is None
    trained(tmp_path, 1)
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert training.wait_for_new_checkpoint(str(tmp_path)) == path
    assert training.wait_for_new_checkpoint(str(tmp_path), path, timeout=0) is None
    asked = []
    found = tf.train.checkpoints_iterator(
        str(tmp_path), timeout=0, timeout_fn=lambda: asked.append(1) or len(asked) == 3
    )
    assert list(found) == [path] and len(asked) == 3


def test_gradients_are_clipped_and_multiplied():
    v, w = tf.get_variable("v", initializer=[3.0, 4.0]), tf.get_variable("w", initializer=1.0)
    pairs = tf.train.GradientDescentOptimizer(1.0).compute_gradients(tf.reduce_sum(v * v) + w)
    clipped = training.clip_gradient_norms_fn(5.0)(pairs)
    twice = training.multiply_gradients(pairs, {w: 2.0})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(clipped[0][0]), [3.0, 4.0], rtol=1e-6)
        assert sess.run(twice[1][0]) == 2.0
        assert len(sess.run(training.add_gradients_summaries(pairs))) == 4


def test_rows_are_drawn_as_often_as_their_rates_say():
    rates = np.array([0.0, 1.0, 4.0], np.float32)
    rows, numbers = training.resample_at_rate(
        [tf.constant(rates), tf.range(3)], tf.constant(rates), seed=3
    )
    drawn = np.zeros(3)
    with tf.Session() as sess:
        for _ in range(400):
            of, found = sess.run([rows, numbers])
            np.testing.assert_array_equal(of, rates[found])
            drawn += np.bincount(found, minlength=3)
    # A sum of Poisson variables is one: its deviation is the root of its mean.
    assert (np.abs(drawn - 400 * rates) <= 5 * np.sqrt(400 * rates)).all()


def test_rows_are_drawn_by_their_weights():
    weights = np.array([1.0, 3.0], np.float32)
    (numbers,), rates = training.weighted_resample([tf.range(2)], tf.constant(weights), 2.0, seed=5)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        drawn = np.zeros(2)
        for _ in range(200):
            found, of = sess.run([numbers, rates])
            np.testing.assert_allclose(of, (2.0 * weights / weights.mean())[found], rtol=1e-4)
            drawn += np.bincount(found, minlength=2)
    assert (np.abs(drawn - [200, 600]) <= 5 * np.sqrt([200, 600])).all()


def test_texts_of_hyperparameters_are_read():
    types = {"a": int, "b": float, "c": str, "on": bool}
    assert training.parse_values("a=1,b=[0.5, 2],c=x y,on=true", types) == {
        "a": 1,
        "b": [0.5, 2.0],
        "c": "x y",
        "on": True,
    }
    assert training.parse_values("b[1]=2.5,b[4]=1", types) == {"b": {1: 2.5, 4: 1.0}}
    assert training.parse_values("z=1,a=2", types, ignore_unknown=True) == {"a": 2}
    for text in ("z=1", "a=1,a=2", "b[1]=1,b[1]=2", "b=[1],b[0]=2", "b[0]=2,b=[1]", "a=x", "=1"):
        with pytest.raises(ValueError):
            training.parse_values(text, types)
