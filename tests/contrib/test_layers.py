"""What surrounds the layers of ``tf.contrib.layers``: collections, averages, training."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

layers = tf.contrib.layers
X = np.random.default_rng(0).normal(2.0, 3.0, size=(8, 4)).astype(np.float32)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_moving_averages_follow_batches_in_training_only(in_place, known):
    x = tf.placeholder(tf.float32, [None, 4])
    training = tf.constant(True) if known else tf.placeholder(tf.bool, [])
    options = {"updates_collections": None} if in_place else {}
    y = layers.batch_norm(x, decay=0.9, is_training=training, **options)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert bool(updates) is not in_place
    mean, variance = tf.get_collection("variables")[1:]
    assert [mean.op.name, variance.op.name] == [
        "BatchNorm/moving_mean",
        "BatchNorm/moving_variance",
    ]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: X} if known else {x: X, training: True}
        got, *_ = sess.run([y, *updates], feed)
        np.testing.assert_allclose(got, (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3), atol=1e-4)
        np.testing.assert_allclose(sess.run(mean), 0.1 * X.mean(0), rtol=1e-4)
        kept = 0.9 + 0.1 * X.var(0, ddof=1)
        np.testing.assert_allclose(sess.run(variance), kept, rtol=1e-4)
        if not known:
            got, *_ = sess.run([y, *updates], {x: X, training: False})
            expected = (X - 0.1 * X.mean(0)) / np.sqrt(kept + 1e-3)
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(sess.run(variance), kept, rtol=1e-4)


def test_regularizers():
    w = np.array([[1.0, -2.0], [3.0, -4.0]], np.float32)
    with tf.Session() as sess:
        for regularizer, expected in [
            (layers.l1_regularizer(0.5), 5.0),
            (layers.l1_regularizer(1.5), 15.0),
            (layers.l2_regularizer(0.5), 7.5),
            (layers.l1_l2_regularizer(1.0, 2.0), 40.0),
            (layers.sum_regularizer([layers.l1_regularizer(0.5), None]), 5.0),
        ]:
            assert sess.run(regularizer(tf.constant(w))) == expected
    assert layers.l2_regularizer(0.0)(tf.constant(w)) is None
    assert layers.sum_regularizer([]) is None
    for make in (layers.l1_regularizer, layers.l2_regularizer):
        with pytest.raises(ValueError, match="cannot be an integer"):
            make(1)
        with pytest.raises(ValueError, match="less than 0"):
            make(-1.0)


def test_regularization_losses_are_collected_once_for_shared_variables():
    for reuse in (None, True):
        layers.fully_connected(
            tf.constant(X),
            3,
            weights_regularizer=layers.l2_regularizer(0.1),
            reuse=reuse,
            scope="shared",
        )
    assert len(tf.losses.get_regularization_losses()) == 1
    assert [v.op.name for v in tf.model_variables()] == ["shared/weights", "shared/biases"]


@pytest.mark.parametrize(
    ("initializer", "deviation"),
    [
        (layers.xavier_initializer(seed=1), np.sqrt(2 / (9 * (40 + 60)))),
        (layers.xavier_initializer(uniform=False, seed=1), np.sqrt(2 / (9 * (40 + 60)))),
        (layers.variance_scaling_initializer(seed=1), np.sqrt(2 / (9 * 40))),
        (layers.variance_scaling_initializer(1.0, "FAN_OUT", True, 1), np.sqrt(1 / (9 * 60))),
    ],
)
def test_initializers_scale_with_the_variable(initializer, deviation):
    w = tf.get_variable("w", [3, 3, 40, 60], initializer=initializer)
    with tf.Session() as sess:
        sess.run(w.initializer)
        assert sess.run(w).std() == pytest.approx(deviation, rel=0.02)


def test_outputs_and_variables_are_collected():
    slim = tf.contrib.slim
    ends_kept = slim.arg_scope([slim.fully_connected], outputs_collections="ends")
    with ends_kept, tf.variable_scope("net"):
        y = slim.stack(
            tf.constant(X),
            slim.fully_connected,
            [3, 2],
            scope="fc",
            variables_collections={"biases": ["b"]},
        )
    ends = slim.utils.convert_collection_to_dict("ends")
    assert list(ends) == ["net/fc/fc_1", "net/fc/fc_2"]
    assert ends["net/fc/fc_2"] is y
    assert [v.op.name for v in tf.get_collection("b")] == [
        "net/fc/fc_1/biases",
        "net/fc/fc_2/biases",
    ]


@pytest.mark.parametrize(
    "optimizer",
    [
        "SGD",
        tf.train.GradientDescentOptimizer,
        lambda rate: tf.train.GradientDescentOptimizer(rate),
    ],
)
def test_optimize_loss_clips_multiplies_and_counts(optimizer):
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer([3.0, 4.0]))
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    step = tf.train.get_or_create_global_step()
    train = layers.optimize_loss(
        tf.nn.l2_loss(w) + v * 0.0,
        step,
        0.5,
        optimizer,
        gradient_multipliers={"w": 2.0},
        clip_gradients=1.0,
        learning_rate_decay_fn=lambda rate, _: rate * 0.5,
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(train) == 12.5
        # The gradient (6, 8) is clipped to (0.6, 0.8).
        np.testing.assert_allclose(sess.run(w), [3 - 0.25 * 0.6, 4 - 0.25 * 0.8], rtol=1e-6)
        assert sess.run(step) == 1
    tags = {op.name for op in tf.get_default_graph().get_operations() if "Summary" in op.type}
    assert {"OptimizeLoss/loss", "OptimizeLoss/global_norm/gradient_norm"} <= tags


def test_embedded_sequences_share_their_table():
    ids = tf.constant([[1, 0], [1, 2]])
    first = layers.embed_sequence(ids, 3, 2, scope="words")
    second = layers.embed_sequence(ids, unique=True, scope="words", reuse=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, b, table = sess.run([first, second, "words/embeddings:0"])
    np.testing.assert_array_equal(a, table[[[1, 0], [1, 2]]])
    np.testing.assert_array_equal(a, b)


def test_sizes_of_windows_may_be_numpys_numbers_or_dimensions():
    x = tf.zeros([1, 6, 6, 2])
    y = tf.layers.conv2d(x, 3, np.int64(3), strides=tf.Dimension(2), padding="same")
    assert layers.max_pool2d(y, np.int32(2)).shape.as_list() == [1, 1, 1, 3]
