"""Loss scales and the optimizer that uses them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

experimental = tf.train.experimental


def test_a_fixed_scale_changes_no_gradient():
    v = tf.Variable([1.0, 2.0])
    loss = tf.reduce_sum(v * v)
    plain = tf.train.GradientDescentOptimizer(0.1)
    scaled = experimental.MixedPrecisionLossScaleOptimizer(plain, 128.0)
    [(grad, _)] = scaled.compute_gradients(loss, [v])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(grad), [2.0, 4.0], rtol=1e-6)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_step_with_an_infinite_gradient_changes_only_the_scale(level):
    v = tf.Variable([1.0, 2.0])
    factor = tf.placeholder(tf.float32, [])
    scale = experimental.DynamicLossScale(initial_loss_scale=8, increment_period=2)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(0.1), scale)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.reduce_sum(v * factor), global_step=step)
    watched = [v, step, *optimizer.variables()]
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {factor: 1.0})
        before = sess.run(watched)
        sess.run(train, {factor: float("inf")})
        for old, new in zip(before, sess.run(watched), strict=True):
            np.testing.assert_array_equal(old, new)
        assert sess.run(scale()) == 4.0
        sess.run(train, {factor: 1.0})
        assert sess.run(step) == 2
        assert sess.run(scale()) == 4.0
        sess.run(train, {factor: 1.0})
        assert sess.run(scale()) == 8.0, "two good steps in a row"


def test_the_scale_never_falls_below_one():
    scale = experimental.DynamicLossScale(initial_loss_scale=2, increment_period=1)
    update, finite = scale.update([tf.constant([np.nan])])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            assert not sess.run([finite, update])[0]
        assert sess.run(scale()) == 1.0


def test_a_small_gradient_survives_in_float16():
    """2**-26 rounds to zero in float16; scaled by 2**15 it does not."""
    w = tf.Variable([[1.0]])
    loss = tf.reduce_sum(tf.matmul(tf.constant([[1.0]]), w)) * 2.0**-26
    results = {}
    for loss_scale in (None, "dynamic"):
        optimizer = experimental.enable_mixed_precision_graph_rewrite(
            tf.train.GradientDescentOptimizer(1.0), loss_scale
        )
        [(grad, _)] = optimizer.compute_gradients(loss, [w])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            results[loss_scale] = sess.run(grad)[0, 0]
    assert results[None] == 0.0
    assert results["dynamic"] == np.float32(2.0**-26)


def test_enabling_marks_the_graph_and_chooses_the_scale():
    opt = tf.train.GradientDescentOptimizer(0.1)
    graph = tf.get_default_graph()
    assert experimental.enable_mixed_precision_graph_rewrite(opt, dtype=tf.bfloat16) is opt
    assert graph.mixed_precision is tf.bfloat16
    half = experimental.enable_mixed_precision_graph_rewrite(opt)
    assert isinstance(half, experimental.MixedPrecisionLossScaleOptimizer)
    assert graph.mixed_precision is tf.float16
    experimental.disable_mixed_precision_graph_rewrite()
    assert graph.mixed_precision is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: experimental.enable_mixed_precision_graph_rewrite(3), "tf.train.Optimizer"),
        (
            lambda: experimental.enable_mixed_precision_graph_rewrite(
                tf.train.GradientDescentOptimizer(0.1), dtype=tf.float32
            ),
            "tf.bfloat16",
        ),
        (lambda: experimental.FixedLossScale(0.5), "at least 1"),
        (lambda: experimental.DynamicLossScale(multiplier=1), "greater than 1"),
        (
            lambda: experimental.MixedPrecisionLossScaleOptimizer(
                tf.train.GradientDescentOptimizer(0.1), "static"
            ),
            "'dynamic'",
        ),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _digits_accuracy(dtype: tf.DType | None) -> float:
    """Of a small network after a short training, on images that it has not seen."""
    from runnel.datasets.digits import load_digits

    pixels, classes = load_digits()
    pixels = pixels.reshape(len(pixels), 64).astype(np.float32) / pixels.max()
    classes = classes.astype(np.int32)
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        generator = np.random.default_rng(0)
        first = tf.Variable((generator.standard_normal((64, 64)) / 8).astype(np.float32))
        second = tf.Variable((generator.standard_normal((64, 10)) / 8).astype(np.float32))
        hidden = tf.nn.relu(tf.matmul(images, first))
        logits = tf.matmul(hidden, second)
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        optimizer = tf.train.AdamOptimizer(0.01)
        if dtype is not None:
            optimizer = experimental.enable_mixed_precision_graph_rewrite(optimizer, dtype=dtype)
        train = optimizer.minimize(tf.reduce_mean(entropy))
        right = tf.reduce_mean(
            tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32)
        )
        with session(COMPILED) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(400):
                part = slice(step * 100 % 1400, step * 100 % 1400 + 100)
                sess.run(train, {images: pixels[part], labels: classes[part]})
            return float(sess.run(right, {images: pixels[1500:], labels: classes[1500:]}))


def test_the_digits_are_learnt_as_well_as_in_float32():
    exact = _digits_accuracy(None)
    assert exact > 0.88
    for dtype in (tf.bfloat16, tf.float16):
        assert abs(_digits_accuracy(dtype) - exact) <= 0.02, dtype
