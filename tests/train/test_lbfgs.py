"""L-BFGS: known minima, closed forms, and how it ends when there is none."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import runnel as tf


def _session():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    return sess


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rosenbrock(dtype):
    v = tf.Variable(np.array([-1.2, 1.0], dtype))
    loss = tf.square(1 - v[0]) + 100 * tf.square(v[1] - tf.square(v[0]))
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    optimizer = tf.train.LBFGSOptimizer(loss, gradient_tolerance=tolerance, loss_tolerance=0.0)
    with _session() as sess:
        result = optimizer.minimize(sess)
        np.testing.assert_allclose(sess.run(v), [1, 1], atol=10 * tolerance)
        assert result.converged and result.gradient_norm <= tolerance
        assert result.loss == pytest.approx(sess.run(loss), abs=1e-6)
    # Steepest descent would need thousands.
    assert result.iterations < 50 and result.evaluations < 75


def test_many_dimensional_rosenbrock():
    size = 50
    v = tf.Variable(np.tile([-1.2, 1.0], size // 2))
    loss = tf.reduce_sum(100 * tf.square(v[1::2] - tf.square(v[::2])) + tf.square(1 - v[::2]))
    with _session() as sess:
        result = tf.train.LBFGSOptimizer(loss, loss_tolerance=0.0).minimize(sess)
        assert result.converged
        np.testing.assert_allclose(sess.run(v), np.ones(size), atol=1e-4)


def test_least_squares_over_several_variables_reaches_the_normal_equations():
    data = np.random.RandomState(0)
    x, y = data.normal(size=(40, 5)), data.normal(size=40)
    w = tf.Variable(np.zeros((5, 1)))
    b = tf.Variable(np.float64(3.0))
    inputs = tf.placeholder(tf.float64, [None, 5])
    targets = tf.placeholder(tf.float64, [None])
    loss = tf.reduce_sum(tf.square(tf.matmul(inputs, w)[:, 0] + b - targets))
    seen = []
    with _session() as sess:
        optimizer = tf.train.LBFGSOptimizer(loss, gradient_tolerance=1e-8, loss_tolerance=0.0)
        result = optimizer.minimize(
            sess,
            {inputs: x, targets: y},
            lambda number, value: seen.append((number, value, sess.run(b))),
        )
        found = np.append(sess.run(w)[:, 0], sess.run(b))
    expected = np.linalg.lstsq(np.column_stack([x, np.ones(40)]), y, rcond=None)[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [number for number, _, _ in seen] == list(range(1, result.iterations + 1))
    losses = [value for _, value, _ in seen]
    assert all(after <= before * (1 + 1e-14) for before, after in pairwise(losses))
    assert seen[-1][2] == found[-1]  # the variables hold the step's result


def test_logistic_regression_reaches_newtons_optimum():
    data = np.random.RandomState(1)
    x = np.column_stack([data.normal(size=(60, 3)), np.ones(60)])
    y = (data.uniform(size=60) < 1 / (1 + np.exp(-x @ [1.0, -2.0, 0.5, 0.3]))).astype(float)
    w = tf.Variable(np.zeros((4, 1)))
    logits = tf.matmul(tf.constant(x), w)[:, 0]
    loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    loss += 0.05 * tf.reduce_sum(tf.square(w))
    newton = np.zeros(4)
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ newton))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + 0.1 * np.eye(4)
        newton -= np.linalg.solve(hessian, x.T @ (p - y) + 0.1 * newton)
    with _session() as sess:
        result = tf.train.LBFGSOptimizer(
            loss, gradient_tolerance=1e-7, loss_tolerance=0.0
        ).minimize(sess)
        assert result.converged
        np.testing.assert_allclose(sess.run(w)[:, 0], newton, atol=1e-6)


def test_slopes_decide_where_the_loss_is_too_coarse():
    """The loss has eight digits before the point: its rounding hides the last steps' decrease."""
    data = np.random.RandomState(2)
    matrix, target = data.normal(size=(8, 4)), data.normal(size=(8, 1))
    w = tf.Variable(np.zeros((4, 1)))
    loss = 1e8 + tf.reduce_sum(tf.square(tf.matmul(tf.constant(matrix), w) - target))
    with _session() as sess:
        optimizer = tf.train.LBFGSOptimizer(loss, gradient_tolerance=1e-6, loss_tolerance=0.0)
        result = optimizer.minimize(sess)
        assert result.converged and result.gradient_norm <= 1e-6
        expected = np.linalg.lstsq(matrix, target, rcond=None)[0]
        np.testing.assert_allclose(sess.run(w), expected, atol=1e-6)


def test_sparse_gradients_and_partitioned_variables():
    table = tf.get_variable(
        "table",
        [4, 2],
        tf.float64,
        initializer=tf.ones_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
    )
    other = tf.Variable(np.ones((3, 2)))
    loss = tf.reduce_sum(tf.square(tf.gather(tf.convert_to_tensor(table), [0, 3]) - 2.0))
    loss += tf.reduce_sum(tf.square(tf.gather(other, [1, 1]) + 1.0))
    with _session() as sess:
        result = tf.train.LBFGSOptimizer(loss).minimize(sess)
        assert result.converged
        found = sess.run([tf.convert_to_tensor(table), other])
    np.testing.assert_allclose(found[0][:, 0], [2, 1, 1, 2], atol=1e-5)
    np.testing.assert_allclose(found[1][:, 0], [1, -1, 1], atol=1e-5)


def test_the_variable_list_is_respected():
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    optimizer = tf.train.LBFGSOptimizer(tf.square(a) + tf.square(b), var_list=[b])
    with _session() as sess:
        with sess.as_default():
            assert optimizer.minimize().converged
        np.testing.assert_allclose(sess.run([a, b]), [2, 0], atol=1e-4)


def test_a_minimum_is_left_where_it_is():
    v = tf.Variable(0.0)
    with _session() as sess:
        result = tf.train.LBFGSOptimizer(tf.square(v)).minimize(sess)
    assert (result.iterations, result.evaluations, result.converged) == (0, 1, True)
    assert result.message == "the gradient is below its tolerance"


def test_the_iteration_limit():
    v = tf.Variable(np.array([-1.2, 1.0]))
    loss = tf.square(1 - v[0]) + 100 * tf.square(v[1] - tf.square(v[0]))
    with _session() as sess:
        before = sess.run(loss)
        result = tf.train.LBFGSOptimizer(loss, max_iterations=3).minimize(sess)
        assert result.iterations == 3 and not result.converged
        assert result.message == "the iteration limit was reached"
        assert sess.run(loss) == pytest.approx(result.loss) and result.loss < before


def test_a_region_without_values_is_avoided():
    v = tf.Variable(np.float64(0.05))
    loss = -tf.log(v) + 10 * v  # undefined for v <= 0; the minimum is at 0.1
    with _session() as sess:
        assert tf.train.LBFGSOptimizer(loss, gradient_tolerance=1e-7).minimize(sess).converged
        assert sess.run(v) == pytest.approx(0.1, abs=1e-6)


def test_a_loss_that_is_not_a_number():
    v = tf.Variable(-1.0)
    with _session() as sess:
        result = tf.train.LBFGSOptimizer(tf.log(v)).minimize(sess)
        assert not result.converged and result.message == "the loss is nan"
        assert sess.run(v) == -1.0


def test_an_error_leaves_the_best_point():
    v = tf.Variable(np.float64(4.0))
    limit = tf.Variable(np.float64(0.5), trainable=False)
    with tf.control_dependencies([tf.assert_greater(v, limit)]):
        loss = tf.square(tf.identity(v) + 3.0)
    with _session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.train.LBFGSOptimizer(loss).minimize(sess)
        assert sess.run(v) > 0.5


def test_mistakes():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="must be a scalar"):
        tf.train.LBFGSOptimizer(v * v)
    with pytest.raises(ValueError, match="does not depend on any"):
        tf.train.LBFGSOptimizer(tf.constant(1.0))
    with pytest.raises(ValueError, match="history must be at least 1"):
        tf.train.LBFGSOptimizer(tf.reduce_sum(v), history=0)
    with pytest.raises(ValueError, match="minimize needs a session"):
        tf.train.LBFGSOptimizer(tf.reduce_sum(v * v)).minimize()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="No variables to optimize"):
        tf.train.LBFGSOptimizer(tf.constant(1.0))
