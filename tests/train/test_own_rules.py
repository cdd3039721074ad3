"""Rules of one's own: subclasses of an optimizer, written as for TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.train.stepping import after, quadratic

INITIAL = np.array([1.0, -2.0], np.float32)


class SignDescent(tf.train.Optimizer):
    """Steps by the sign of the gradient; remembers how often each row moved."""

    def __init__(self, learning_rate=0.1, use_locking=False, name="SignDescent"):
        super().__init__(use_locking, name)
        self._lr = learning_rate

    def _prepare(self):
        self._lr_t = tf.convert_to_tensor(self._lr, name="learning_rate")

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "moves", self._name)

    def _apply_dense(self, grad, var):
        lr_t = tf.cast(self._lr_t, var.dtype.base_dtype)
        moves = self.get_slot(var, "moves")
        counted = tf.assign_add(moves, tf.ones_like(moves))
        return tf.group(tf.assign_sub(var, lr_t * tf.sign(grad)), counted)

    def _apply_sparse(self, grad, var):
        lr_t = tf.cast(self._lr_t, var.dtype.base_dtype)
        moves = self.get_slot(var, "moves")
        counted = tf.scatter_add(moves, grad.indices, tf.ones_like(grad.values))
        return tf.group(tf.scatter_sub(var, grad.indices, lr_t * tf.sign(grad.values)), counted)


@pytest.mark.parametrize("resource", [False, True])
def test_a_rule_of_ones_own(resource):
    v, loss = quadratic(use_resource=resource)
    optimizer = SignDescent(0.5)
    train = optimizer.minimize(loss)
    np.testing.assert_allclose(after(train, v, 2), [0.0, -1.0])
    np.testing.assert_allclose(after(train, optimizer.get_slot(v, "moves"), 2), [2, 2])


@pytest.mark.parametrize("resource", [False, True])
def test_a_rule_of_ones_own_sees_each_index_once(resource):
    table = tf.Variable(np.ones((4, 1), np.float32), use_resource=resource)
    optimizer = SignDescent(0.5)
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, [2, 0, 2])))
    moves = optimizer.get_slot(table, "moves")
    np.testing.assert_allclose(after(train, [table, moves], 1)[0][:, 0], [0.5, 1, 0.5, 1])
    np.testing.assert_allclose(after(train, moves)[:, 0], [1, 0, 1, 0])


class LazyAdam(tf.train.AdamOptimizer):
    """Adam that moves only the rows with a gradient, built on its parent's tensors and slots."""

    def _apply_sparse(self, grad, var):
        beta1_power, beta2_power = self._get_beta_accumulators()
        lr = self._lr_t * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rows_m = self._beta1_t * tf.gather(m, grad.indices) + (1 - self._beta1_t) * grad.values
        rows_v = self._beta2_t * tf.gather(v, grad.indices) + (1 - self._beta2_t) * tf.square(
            grad.values
        )
        step = lr * rows_m / (tf.sqrt(rows_v) + self._epsilon_t)
        return tf.group(
            tf.scatter_update(m, grad.indices, rows_m),
            tf.scatter_update(v, grad.indices, rows_v),
            tf.scatter_sub(var, grad.indices, step),
        )


def test_a_rule_built_on_adam():
    table = tf.Variable(np.ones((4, 1), np.float32))
    optimizer = LazyAdam(0.5)
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, [2, 0, 2])))
    np.testing.assert_allclose(after(train, table)[:, 0], [0.5, 1, 0.5, 1], rtol=1e-5)
    np.testing.assert_allclose(
        after(train, optimizer.get_slot(table, "m"))[:, 0], [0.1, 0, 0.2, 0], rtol=1e-5
    )


class Resourceful(tf.train.Optimizer):
    """A rule for resource variables only."""

    def _resource_apply_dense(self, grad, handle):
        return handle.assign_sub(grad * 0.25, read_value=False)

    def _resource_apply_sparse(self, grad, handle, indices):
        return handle.scatter_sub(tf.IndexedSlices(grad * 0.25, indices)).op


def test_a_rule_for_resource_variables():
    v, loss = quadratic(use_resource=True)
    table = tf.Variable(np.ones((3, 1), np.float32), use_resource=True)
    train = Resourceful(False, "Resourceful").minimize(
        loss + tf.reduce_sum(tf.gather(table, [1, 1]))
    )
    np.testing.assert_allclose(after(train, v), INITIAL * 0.5)
    np.testing.assert_allclose(after(train, table)[:, 0], [1, 0.5, 1])
    ref, loss = quadratic("ref")
    with pytest.raises(NotImplementedError, match="Resourceful has no rule for dense gradients"):
        Resourceful(False, "Resourceful").minimize(loss, var_list=[ref])
