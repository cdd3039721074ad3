"""Stabilising rewrites: each removes an overflow, an underflow or a cancellation."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


def op_types(fetches, feeds=()):
    """The op types of the step that ``fetches`` need, after rewriting."""
    from runnel.passes.program.prune import prune
    from runnel.passes.rewrites.dead_code import remove_dead_code
    from runnel.passes.rewrites.rewrite import rewrite

    program = remove_dead_code(rewrite(prune(list(fetches), [], list(feeds))))
    return {node.op_def.name for node in program.nodes}


def without_rewriting(fetch, feed):
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.optimizer_options.global_jit_level = -1
    with tf.Session(graph=fetch.graph, config=config) as sess:
        return sess.run(fetch, feed)


CASES = {
    # name: (expression, input on which it fails as written, what it should give)
    "log(softmax(x))": (
        lambda x: tf.log(tf.nn.softmax(x)),
        [[1000.0, 0.0]],
        [[0.0, -1000.0]],
    ),
    "log(sigmoid(x))": (lambda x: tf.log(tf.sigmoid(x)), [[-200.0, 0.0]], [[-200.0, -np.log(2)]]),
    "log(1 - sigmoid(x))": (
        lambda x: tf.log(1.0 - tf.sigmoid(x)),
        [[100.0, 0.0]],
        [[-100.0, -np.log(2)]],
    ),
    "log(1 + x)": (lambda x: tf.log(1.0 + x), [[1e-10, 1.0]], [[1e-10, np.log(2)]]),
    "log(x + 1)": (lambda x: tf.log(x + 1.0), [[1e-10, 1.0]], [[1e-10, np.log(2)]]),
    "log(1 + exp(x))": (lambda x: tf.log(1.0 + tf.exp(x)), [[1000.0, 0.0]], [[1000.0, np.log(2)]]),
    "exp(x) - 1": (lambda x: tf.exp(x) - 1.0, [[1e-10, 0.0]], [[1e-10, 0.0]]),
    "log(exp(x))": (lambda x: tf.log(tf.exp(x)), [[1000.0, -1000.0]], [[1000.0, -1000.0]]),
    "log(sum(exp(x)))": (
        lambda x: tf.log(tf.reduce_sum(tf.exp(x), axis=1)),
        [[1000.0, 1000.0]],
        [1000.0 + np.log(2)],
    ),
    "log(sum(exp(x))), kept": (
        lambda x: tf.log(tf.reduce_sum(tf.exp(x), axis=1, keepdims=True)),
        [[-1000.0, -1000.0]],
        [[-1000.0 + np.log(2)]],
    ),
    "sqrt(x * x)": (lambda x: tf.sqrt(x * x), [[1e30, -1e-30]], [[1e30, 1e-30]]),
    "sqrt(square(x))": (lambda x: tf.sqrt(tf.square(x)), [[1e30, -1e-30]], [[1e30, 1e-30]]),
}


@pytest.mark.parametrize("case", CASES)
def test_rewritten_expressions_are_right_where_the_original_fails(case):
    build, value, expected = CASES[case]
    x = tf.placeholder(tf.float32, np.shape(value))
    y = build(x)
    feed = {x: np.array(value, np.float32)}
    np.testing.assert_allclose(run_both(y, feed), expected, rtol=1e-5)
    as_written = without_rewriting(y, feed)
    assert not np.allclose(as_written, expected, rtol=1e-5, atol=0), "nothing was gained"


@pytest.mark.parametrize("case", CASES)
def test_rewritten_expressions_agree_with_numpy_on_ordinary_values(case):
    build, value, _ = CASES[case]
    x = tf.placeholder(tf.float32, np.shape(value))
    ordinary = np.linspace(0.3, 1.7, np.size(value)).reshape(np.shape(value)).astype(np.float32)
    y = build(x)
    np.testing.assert_allclose(
        run_both(y, {x: ordinary}), without_rewriting(y, {x: ordinary}), rtol=1e-5, atol=1e-6
    )


def test_one_over_one_plus_exp_becomes_a_sigmoid():
    x = tf.placeholder(tf.float32, [3])
    y = 1.0 / (1.0 + tf.exp(-x))
    assert op_types([y], [x]) == {"Sigmoid"}
    np.testing.assert_allclose(run_both(y, {x: [-1000.0, 0.0, 1000.0]}), [0.0, 0.5, 1.0], atol=1e-7)


def test_the_gradient_of_the_textbook_cross_entropy_survives_underflow():
    """-sum(y_ * log(softmax(x))) is in every introduction; as written its gradient is NaN."""
    x, labels = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2, 3])
    y = tf.nn.softmax(x)
    loss = -tf.reduce_sum(labels * tf.log(y))
    gradient = tf.gradients(loss, x)[0]
    feed = {x: [[1000.0, 0.0, 0.0], [1.0, 2.0, 3.0]], labels: [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]}
    assert np.isnan(without_rewriting(gradient, feed)).any()
    exponential = np.exp([1.0, 2.0, 3.0])
    probabilities = np.array([[1.0, 0.0, 0.0], exponential / exponential.sum()])
    value, found = run_both([loss, gradient], feed)
    np.testing.assert_allclose(found, probabilities - np.array(feed[labels]), atol=1e-6)
    np.testing.assert_allclose(value, 1000.0 - np.log(probabilities[1, 0]), rtol=1e-6)


def test_the_same_with_a_batch_of_unknown_size():
    x, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    loss = -tf.reduce_sum(labels * tf.log(tf.nn.softmax(x)))
    gradient = tf.gradients(loss, x)[0]
    found = run_both(gradient, {x: [[1000.0, 0.0, 0.0]], labels: [[0.0, 1.0, 0.0]]})
    np.testing.assert_allclose(found, [[1.0, -1.0, 0.0]], atol=1e-6)


def test_a_product_with_its_own_divisor_cancels_only_elementwise():
    a, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    np.testing.assert_array_equal(run_both(a / y * y, {a: [1.0, 2.0], y: [0.0, 4.0]}), [1.0, 2.0])
    scalar = tf.placeholder(tf.float32, [])
    broadcast = scalar / y * y
    assert broadcast.shape == [2]
    assert run_both(broadcast, {scalar: 3.0, y: [1.0, 2.0]}).shape == (2,)


def test_what_only_looks_similar_is_left_alone():
    x = tf.placeholder(tf.float32, [2])
    assert "Log" in op_types([tf.log(2.0 + x)], [x])
    assert "Log" in op_types([tf.log(tf.sigmoid(x) + 1e-8)], [x])
    assert "Sqrt" in op_types([tf.sqrt(x * (x + 1.0))], [x])
    vector_of_ones = tf.constant([[1.0], [1.0]])
    y = tf.log(x + vector_of_ones)  # broadcasts: not log1p(x)
    assert run_both(y, {x: [1.0, 2.0]}).shape == (2, 2)


def test_a_numerator_that_the_division_broadcasts_keeps_the_quotients_shape():
    """(a / y) * y is a, but of the shape of y; static shapes that look alike need not be."""
    a, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    feed = {a: [3.0], y: [1.0, 0.0, 4.0]}
    for z in ((a / y) * y, y * (a * tf.reciprocal(y))):
        np.testing.assert_array_equal(run_both(z, feed), [3.0, 3.0, 3.0])


def test_the_division_of_integers_is_not_undone_by_multiplying():
    a, y = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [2])
    for op_type in ("Div", "RealDiv", "TruncateDiv"):
        z = tf.get_op_def(op_type)(a, y) * y
        np.testing.assert_array_equal(run_both(z, {a: [7, 9], y: [2, 3]}), [6, 9])
