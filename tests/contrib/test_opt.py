"""Adam that leaves alone the rows that a sparse gradient does not name."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.passes.clusters.test_cluster import segments
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_rows_follow_adam_and_others_stay(resource):
    found = steps_of(
        lambda: tf.contrib.opt.LazyAdamOptimizer(0.1), TABLE, ROWS, PLACES, resource=resource
    )
    value, mean, squares = TABLE.astype(np.float64), np.zeros((6, 2)), np.zeros((6, 2))
    for step, (rows, places) in enumerate(zip(ROWS, PLACES, strict=True), 1):
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        for place, total in totals(rows, places).items():
            mean[place] += (total - mean[place]) * 0.1
            squares[place] += (total**2 - squares[place]) * 0.001
            value[place] -= rate * mean[place] / (np.sqrt(squares[place]) + 1e-8)
        np.testing.assert_allclose(found[step - 1], value, rtol=2e-5)


def test_dense_gradients_are_adam_s():
    lazy = steps_of(lambda: tf.contrib.opt.LazyAdamOptimizer(0.1), INITIAL, GRADIENTS)
    plain = steps_of(lambda: tf.train.AdamOptimizer(0.1), INITIAL, GRADIENTS)
    np.testing.assert_array_equal(lazy, plain)


def test_a_step_sees_only_rows_of_the_table():
    table = tf.get_variable("table", [50, 4])
    loss = tf.reduce_sum(tf.square(tf.gather(table, [3, 7, 3])))
    train = tf.contrib.opt.LazyAdamOptimizer(0.1).minimize(loss)
    (segment,) = segments([], targets=[train])
    for node in segment.nodes:
        if node.op_def.name not in ("ScatterUpdate", "VariableV2", "Identity"):
            assert all(tensor.shape.as_list()[:1] != [50] for tensor in node.op.outputs), node


def test_only_the_listed_variables_decay():
    a, b = tf.Variable([1.0]), tf.Variable([1.0])
    opt = tf.contrib.opt.MomentumWOptimizer(0.5, learning_rate=0.0, momentum=0.0)
    train = opt.minimize(tf.reduce_sum(a * b), decay_var_list=[a])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run([a, b]) == [[0.5], [1.0]]


def test_a_swapping_saver_saves_averages_as_the_variables(tmp_path):
    w = tf.get_variable("w", initializer=[1.0])
    opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.5), 0.5)
    with pytest.raises(RuntimeError, match="before creating"):
        opt.swapping_saver()
    train = opt.minimize(tf.reduce_sum(w))
    saver = opt.swapping_saver()
    with pytest.raises(ValueError, match="not part of variables"):
        opt.swapping_saver([w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        path = saver.save(sess, str(tmp_path / "model"))
        reader = tf.train.load_checkpoint(path)
        assert reader.get_tensor("w") == [0.75]
        assert reader.get_tensor("w/ExponentialMovingAverage") == [0.5]
        sess.run(w.assign([9.0]))
        saver.restore(sess, path)
        assert sess.run(w) == [0.5]
