"""Gradients written by hand: those of variables, passed through, of values computed anew."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session


def _variable(use_resource):
    return tf.get_variable("w", [3], initializer=tf.ones_initializer(), use_resource=use_resource)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_gradient_written_by_hand_gives_those_of_variables(use_resource):
    w, x = _variable(use_resource), tf.constant([1.0, 2.0, 3.0])

    @tf.custom_gradient
    def scaled(value):
        def gradient(dy, variables):
            assert variables == [w]
            return 10.0 * dy, [100.0 * dy * value]

        return value * w, gradient

    slopes = tf.gradients(tf.reduce_sum(scaled(x)), [x, w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        of_x, of_w = sess.run([tf.convert_to_tensor(slope) for slope in slopes])
    np.testing.assert_array_equal(of_x, [10, 10, 10])
    np.testing.assert_array_equal(of_w, [100, 200, 300])


def test_a_gradient_that_would_lose_variables_is_refused():
    w = _variable(False)

    @tf.custom_gradient
    def scaled(value):
        return value * w, lambda dy: dy

    with pytest.raises(TypeError, match=r"w:0.*'variables'"):
        scaled(tf.ones([3]))
    assert scaled.__name__ == "scaled"


def test_variables_behind_the_arguments_are_not_the_functions_own():
    w = _variable(False)

    @tf.custom_gradient
    def doubled(value):
        return 2.0 * value, lambda dy: 5.0 * dy

    slope = tf.gradients(doubled(w * 1.0), w)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(slope), [5, 5, 5])


def test_the_straight_through_estimator():
    x = tf.placeholder(tf.float32, [None])
    y = tf.grad_pass_through(tf.round)(x)
    value, slope = run_both([y, tf.gradients(3.0 * y, x)[0]], {x: [0.4, 1.6]})
    np.testing.assert_array_equal(value, [0, 2])
    np.testing.assert_array_equal(slope, [3, 3])


def _layers(x, wrap):
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        for number in range(3):

            def layer(value, scale, number=number):
                weights = tf.get_variable(f"w{number}", [4, 4])
                return tf.tanh(tf.matmul(value, weights)) * scale

            x = wrap(layer)(x, tf.constant(0.5))
    return x


@pytest.mark.parametrize("tier", [INTERPRETED, COMPILED])
def test_values_computed_again_give_the_same_gradients(tier):
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32))
    kept, again = (_layers(x, wrap) for wrap in (lambda f: f, tf.recompute_grad))
    variables = tf.trainable_variables()
    assert len(variables) == 3
    of_kept, of_again = (tf.gradients(y, [x, *variables]) for y in (kept, again))
    second = [tf.gradients(of_kept[0], x), tf.gradients(of_again[0], x)]
    with session(tier) as sess:
        sess.run(tf.global_variables_initializer())
        for a, b in zip(
            sess.run([of_kept, second[0]]), sess.run([of_again, second[1]]), strict=True
        ):
            for one, other in zip(a, b, strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)


def test_what_is_computed_again_waits_for_the_gradient():
    x = tf.placeholder(tf.float32, [4])
    tf.gradients(tf.recompute_grad(tf.sin)(x), x)
    barrier = next(op for op in x.graph.get_operations() if op.type == "ComputationBarrier")
    sines = [op for op in x.graph.get_operations() if op.type == "Sin"]
    assert len(sines) == 2 and sines[1].inputs[0] is barrier.outputs[0]
    assert len(barrier.inputs) == 2  # the argument, and the gradient that has come
