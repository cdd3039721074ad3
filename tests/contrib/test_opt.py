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
