"""What constants fold to still waits for what their inputs waited for."""

from __future__ import annotations

import pytest

import runnel as tf
from tests.execution_modes import MODES, forced

CHAINS = {
    "alone": lambda k: k,
    "sum": lambda k: k + 1,
    "range": lambda k: tf.range(k)[0],
    "fill": lambda k: tf.reduce_sum(tf.fill([k, 2], 1)),
    "stack": lambda k: tf.stack([k, 2])[1],
    "cast": lambda k: tf.cast(tf.cast(k, tf.float32) * 2.0, tf.int32),
    "several": lambda k: tf.reshape(tf.tile([k], [k]), [-1])[0] * tf.size(tf.ones([k, k])),
    "cond": lambda k: tf.cond(tf.greater(k, 1), lambda: k + 1, lambda: k),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chain", CHAINS)
def test_an_effect_behind_a_constant_behind_a_failed_check_does_not_happen(chain, mode):
    wrong = tf.Assert(tf.placeholder_with_default(False, []), ["as expected"])
    with tf.control_dependencies([wrong]):
        k = tf.identity(tf.constant(3))
    value = CHAINS[chain](k)
    queue = tf.FIFOQueue(4, tf.int32, [()])
    variable = tf.Variable(7)
    for effect in (queue.enqueue(value), variable.assign(value)):
        with forced(mode), tf.Session() as sess:
            sess.run(variable.initializer)
            with pytest.raises(tf.errors.InvalidArgumentError, match="as expected"):
                sess.run(effect)
            assert sess.run([queue.size(), variable]) == [0, 7]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chain", CHAINS)
def test_an_update_behind_a_constant_comes_after_what_the_constant_waits_for(chain, mode):
    first, second = tf.Variable(1), tf.Variable(1)
    with tf.control_dependencies([first.assign(5)]):
        k = tf.identity(tf.constant(3))
    with tf.control_dependencies([CHAINS[chain](k)]):
        copied = second.assign(first.read_value())
    with forced(mode), tf.Session() as sess:
        sess.run([first.initializer, second.initializer])
        assert sess.run(copied) == 5
