"""Adam, against the formula in NumPy, and the size of what it adds to a graph."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of


def _adam(w, gradients, rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8):
    w, m, v = w.astype(np.float64), np.zeros(w.shape), np.zeros(w.shape)
    for t, gradient in enumerate(gradients.astype(np.float64), 1):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        w = w - rate * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + epsilon)
        yield w


@pytest.mark.parametrize("options", [{}, {"beta1": 0.5, "beta2": 0.8, "epsilon": 0.1}])
def test_steps_by_the_mean_over_the_root_of_the_mean_square(options):
    found = steps_of(lambda: tf.train.AdamOptimizer(0.1, **options), INITIAL, GRADIENTS)
    np.testing.assert_allclose(
        found, list(_adam(INITIAL, GRADIENTS, **options)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("resource", [False, True])
def test_a_sparse_gradient_is_as_good_as_the_dense_one(resource):
    found = steps_of(lambda: tf.train.AdamOptimizer(0.1), TABLE, ROWS, PLACES, resource=resource)
    dense = np.zeros((len(ROWS), *TABLE.shape))
    for gradient, rows, places in zip(dense, ROWS, PLACES):
        np.add.at(gradient, places, rows)
    np.testing.assert_allclose(found, list(_adam(TABLE, dense)), rtol=1e-4, atol=1e-5)


def test_one_pair_of_powers_serves_all_variables():
    a, b = tf.Variable(INITIAL, name="a"), tf.Variable(TABLE.astype(np.float64), name="b")
    optimizer = tf.train.AdamOptimizer(0.1)
    optimizer.minimize(tf.cast(tf.reduce_sum(a * a), tf.float64) + tf.reduce_sum(b * b))
    assert [v.op.name for v in optimizer.variables()] == [
        "a/Adam",
        "a/Adam_1",
        "b/Adam",
        "b/Adam_1",
        "beta1_power",
        "beta2_power",
    ]
    power = optimizer._get_beta_accumulators()[0]
    assert power.dtype.base_dtype == tf.float32 and optimizer.get_slot(b, "m").dtype.base_dtype == (
        tf.float64
    )


def test_what_minimize_adds_for_a_variable_is_small():
    def operations(variables):
        with tf.Graph().as_default() as graph:
            made = [tf.Variable(INITIAL, name=f"v{i}") for i in range(variables)]
            loss = tf.add_n([tf.reduce_sum(v) for v in made])
            pairs = tf.train.AdamOptimizer(0.1).compute_gradients(loss)
            before = len(graph.get_operations())
            tf.train.AdamOptimizer(0.1).apply_gradients(pairs)
            return len(graph.get_operations()) - before

    few, many = operations(1), operations(11)
    # Two slots (initial value, variable, initializer and read each) and fifteen for the formula.
    assert (many - few) / 10 <= 24
    assert few <= 24 + 30
