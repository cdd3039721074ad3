"""Minimizing with SciPy, or an algorithm of one's own, outside the graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import runnel as tf

RESOURCES = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def vector(resource: bool = False) -> tf.Variable:
    return tf.Variable([7.0, 7.0], name="vector", use_resource=resource)


def minimized(optimizer, variable, **how):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        optimizer.minimize(sess, **how)
        return sess.run(variable)


@RESOURCES
def test_a_norm_becomes_zero(resource):
    v = vector(resource)
    opt = tf.contrib.opt.ScipyOptimizerInterface(
        tf.reduce_sum(tf.square(v)), options={"maxiter": 100}
    )
    np.testing.assert_allclose(minimized(opt, v), [0, 0], atol=1e-5)


def test_bounds_hold():
    v, free = vector(), tf.Variable(3.0)
    loss = tf.reduce_sum(tf.square(v)) + tf.square(free - 1.0)
    opt = tf.contrib.opt.ScipyOptimizerInterface(loss, var_to_bounds={v: ([1, 2], np.inf)})
    np.testing.assert_allclose(minimized(opt, v), [1, 2], atol=1e-5)


def test_equalities_and_inequalities_hold():
    v = vector()
    opt = tf.contrib.opt.ScipyOptimizerInterface(
        tf.reduce_sum(tf.square(v)),
        equalities=[v[1] - 1.0],
        inequalities=[v[0] - 1.0],
        method="SLSQP",
    )
    np.testing.assert_allclose(minimized(opt, v), [1, 1], atol=1e-5)


@RESOURCES
def test_a_network_goes_where_scipy_takes_the_same_function(resource):
    x = np.linspace(-1, 1, 20)[:, None]
    y = np.sin(3 * x)
    start = np.random.RandomState(0).normal(0, 0.5, 13)

    def loss_of(packed):
        w, b, u = packed[:6].reshape(1, 6), packed[6:12], packed[12]
        return np.mean((np.tanh(x @ w + b).sum(1, keepdims=True) * u - y) ** 2)

    inputs = tf.placeholder(tf.float64, [None, 1])
    w, b, u = (
        tf.Variable(part, use_resource=resource)
        for part in (start[:6].reshape(1, 6), start[6:12], start[12])
    )
    hidden = tf.reduce_sum(tf.tanh(tf.matmul(inputs, w) + b), 1, keepdims=True)
    loss = tf.reduce_mean(tf.square(hidden * u - y))
    options = {"maxiter": 30, "maxcor": 10, "ftol": 1e-12}
    opt = tf.contrib.opt.ScipyOptimizerInterface(loss, method="L-BFGS-B", options=options)
    losses, points = [], []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        opt.minimize(
            sess,
            feed_dict={inputs: x},
            fetches=[loss, u],
            loss_callback=lambda value, factor: losses.append((value, factor)),
            step_callback=lambda packed: points.append(np.array(packed)),
        )
        found = np.concatenate([np.ravel(part) for part in sess.run([w, b, u])])
    expected = optimize.minimize(loss_of, start, method="L-BFGS-B", options=options)
    assert losses[0] == (pytest.approx(loss_of(start)), start[12])
    assert len(losses) >= len(points) >= 20
    np.testing.assert_array_equal(points[-1], found)
    assert loss_of(found) == pytest.approx(expected.fun, rel=0.2)
    assert loss_of(found) < loss_of(start) / 20


def test_variables_keep_their_values_until_the_end():
    v = vector()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        opt = tf.contrib.opt.ScipyOptimizerInterface(tf.reduce_sum(tf.square(v)))
        seen = []
        opt.minimize(sess, step_callback=lambda packed: seen.append(sess.run(v)))
    assert seen
    np.testing.assert_array_equal(seen, [[7, 7]] * len(seen))


def test_an_algorithm_of_one_s_own_gets_what_it_needs():
    class Descent(tf.contrib.opt.ExternalOptimizerInterface):
        def _minimize(self, initial_val, loss_grad_func, optimizer_kwargs, **rest):
            assert rest["packed_bounds"] is None and rest["equality_funcs"] == []
            value = initial_val
            for _ in range(optimizer_kwargs["steps"]):
                value = value - 0.1 * loss_grad_func(value)[1]
            return value

    v = vector()
    other = tf.Variable([1.0])  # the loss does not depend on it
    opt = Descent(tf.reduce_sum(tf.square(v - 2.0)), var_list=[v, other], steps=3)
    np.testing.assert_allclose(minimized(opt, v), [2 + 5 * 0.8**3] * 2, rtol=1e-6)


def test_arguments_that_are_set_here_are_refused():
    v = vector()
    loss = tf.reduce_sum(v)
    for name, why in (("bounds", "var_to_bounds"), ("jac", "set automatically")):
        with pytest.raises(ValueError, match=why):
            minimized(tf.contrib.opt.ScipyOptimizerInterface(loss, **{name: 1}), v)
    with pytest.raises(NotImplementedError, match="_minimize"):
        minimized(tf.contrib.opt.ExternalOptimizerInterface(loss), v)
    with pytest.raises(ValueError, match="session"):
        tf.contrib.opt.ScipyOptimizerInterface(loss).minimize()
