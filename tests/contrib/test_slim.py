"""``tf.contrib.slim``'s loops; losses and metrics with predictions first."""

from __future__ import annotations

import numpy as np

import runnel as tf

slim = tf.contrib.slim


def _model():
    x = tf.constant(np.linspace(-1, 1, 20, dtype=np.float32)[:, None])
    y = slim.fully_connected(x, 1, activation_fn=None, scope="line")
    slim.losses.mean_squared_error(y, 3.0 * x + 1.0)
    return slim.losses.get_total_loss()


def test_training_writes_checkpoints_and_goes_on_from_them(tmp_path):
    for steps in (30, 60):
        with tf.Graph().as_default():
            train_op = slim.learning.create_train_op(
                _model(),
                tf.train.GradientDescentOptimizer(0.3),
                clip_gradient_norm=100.0,
                summarize_gradients=True,
            )
            loss = slim.learning.train(train_op, str(tmp_path), number_of_steps=steps)
            assert tf.train.latest_checkpoint(str(tmp_path)).endswith(f"-{steps}")
    assert loss < 1e-3

    with tf.Graph().as_default():
        total = _model()
        value, update = slim.metrics.streaming_mean(total)
        found = slim.evaluation.evaluate_once(
            "",
            tf.train.latest_checkpoint(str(tmp_path)),
            str(tmp_path / "eval"),
            num_evals=3,
            eval_op=update,
            final_op=value,
        )
    assert found < 1e-3


def test_a_loss_that_is_not_finite_stops_the_training_operation():
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    train_op = slim.learning.create_train_op(1.0 / w, tf.train.GradientDescentOptimizer(0.1))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        try:
            sess.run(train_op)
        except tf.errors.InvalidArgumentError as error:
            assert "LossTensor is inf or nan" in str(error)
        else:
            raise AssertionError("an infinite loss passed")


def test_losses_and_metrics_take_predictions_first():
    logits = tf.constant([[2.0, -1.0], [0.5, 0.25]])
    labels = tf.constant([[1.0, 0.0], [0.0, 1.0]])
    with tf.Session() as sess:
        for name in ("softmax_cross_entropy", "sigmoid_cross_entropy"):
            ours = getattr(tf.contrib.losses, name)(logits, labels)
            assert sess.run(ours) == sess.run(getattr(tf.losses, name)(labels, logits))
        assert len(tf.losses.get_losses()) == 4
        guesses, right = tf.constant([1, 1, 0, 0]), tf.constant([1, 0, 0, 0])
        metrics = {
            "precision": tf.contrib.metrics.streaming_precision(guesses, right),
            "recall": tf.contrib.metrics.streaming_recall(predictions=guesses, labels=right),
            "accuracy": tf.contrib.metrics.streaming_accuracy(guesses, right),
        }
        values, updates = tf.contrib.metrics.aggregate_metric_map(metrics)
        sess.run(tf.local_variables_initializer())
        sess.run(updates)
        assert sess.run(values) == {"precision": 0.5, "recall": 1.0, "accuracy": 0.75}
        assert sess.run(tf.contrib.metrics.accuracy(guesses, right)) == 0.75
