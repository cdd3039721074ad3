"""Where gradients flow through conditionals and loops, where not, and what they are made of."""

import numpy as np
import pytest

import runnel as tf


def loop(n, step, start, **options):
    return tf.while_loop(
        lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start], **options
    )[1]


def run(fetches, feed_dict=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed_dict)


# Inside -----------------------------------------------------------------------------------------


def test_a_gradient_inside_a_branch():
    x, p = tf.placeholder(tf.float64, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.gradients(x**3, x)[0], lambda: tf.gradients(tf.sin(x), x)[0])
    (second,) = tf.gradients(y, x)
    assert run([y, second], {x: 2.0, p: True}) == pytest.approx([12.0, 12.0])
    assert run([y, second], {x: 2.0, p: False}) == pytest.approx([np.cos(2.0), -np.sin(2.0)])


def test_a_gradient_inside_a_branch_of_what_was_made_outside():
    x, p = tf.placeholder(tf.float64, []), tf.placeholder(tf.bool, [])
    outside = x**3
    y = tf.cond(p, lambda: tf.gradients(outside * x, x)[0], lambda: x)
    assert run(y, {x: 2.0, p: True}) == pytest.approx(32.0)
    assert run(y, {x: 2.0, p: False}) == 2.0


def slope(fetch, x, at, feed_dict):
    """The derivative of a scalar, by central differences."""
    delta = 1e-6
    above, below = (run(fetch, {x: at + d, **feed_dict}) for d in (delta, -delta))
    return (above - below) / (2 * delta)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("used_outside", [False, True])
def test_a_gradient_of_a_loop_taken_in_a_branch_is_differentiated(taken, used_outside):
    """Where the branch is not taken, nothing that the loop kept has a gradient."""
    x, p = tf.placeholder(tf.float64, []), tf.placeholder(tf.bool, [])
    y = loop(2, lambda i, s: tf.sin(s) * s, x)
    z = tf.cond(p, lambda: tf.gradients(y, x)[0], lambda: x * x)
    if used_outside:
        z += y
    (found,) = tf.gradients(z, x)
    assert run(found, {x: 1.3, p: taken}) == pytest.approx(slope(z, x, 1.3, {p: taken}), rel=1e-6)


def test_a_gradient_of_a_loop_taken_in_a_branch_of_an_iteration_is_differentiated():
    x, turn = tf.placeholder(tf.float64, []), tf.placeholder(tf.int32, [])

    def body(i, s):
        inner = tf.cond(s > 0.0, lambda: loop(2, lambda j, t: tf.sin(t) * s, s), lambda: s)
        return tf.cond(tf.equal(i, turn), lambda: tf.gradients(inner, s)[0], lambda: s + inner)

    z = loop(3, body, x)
    (found,) = tf.gradients(z, x)
    for first in range(4):
        expected = slope(z, x, 0.8, {turn: first})
        assert run(found, {x: 0.8, turn: first}) == pytest.approx(expected, rel=1e-6)


def test_a_gradient_inside_a_loop_by_a_captured_tensor():
    w = tf.placeholder(tf.float64, [])

    def body(i, x):
        (slope,) = tf.gradients(tf.square(w * x), w)  # within this iteration
        return i + 1, x + 0.1 * slope

    _, last = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(1.0, tf.float64)])
    expected = 1.0
    for _ in range(3):
        expected += 0.1 * 2 * 0.5 * expected**2
    assert run(last, {w: 0.5}) == pytest.approx(expected)


def test_inside_a_loop_the_variables_of_the_loop_have_no_past():
    start = tf.constant(2.0)

    def body(i, x):
        assert tf.gradients(x * x, start) == [None]
        return i + 1, x * 2.0

    tf.while_loop(lambda i, _: i < 3, body, [0, start])


def test_a_gradient_inside_a_loop_cannot_go_through_another_loop_outside():
    x = tf.constant(2.0)
    y = loop(3, lambda i, s: s * x, x)

    def body(i, s):
        return i + 1, s + tf.gradients(y * s, x)[0]

    with pytest.raises(LookupError, match="inside a loop cannot go through the loop .*outside"):
        tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(0.0)])


# Cut --------------------------------------------------------------------------------------------


def test_stop_gradient_on_a_loop_variable():
    x = tf.constant(3.0, tf.float64)
    y = loop(3, lambda i, s: tf.stop_gradient(s) * x, x)
    # Only the last iteration's x counts: the rest is behind the cut.
    assert run(tf.gradients(y, x))[0] == pytest.approx(27.0)


def test_stop_gradients_inside_a_loop():
    x, w = tf.constant(3.0, tf.float64), tf.constant(2.0, tf.float64)
    y = loop(2, lambda i, s: s * w, x)
    assert tf.gradients(y, [x, w], stop_gradients=[w])[1] is not None
    assert run(tf.gradients(y, [x, w], stop_gradients=[w])) == pytest.approx([4.0, 12.0])


@pytest.mark.parametrize("nested", [False, True])
def test_no_back_propagation(nested):
    x = tf.constant(2.0)

    def made():
        return loop(3, lambda i, s: s * x, x, back_prop=False)

    y = loop(2, lambda i, s: s * x + made(), x) if nested else made()
    grads = tf.gradients(y, x)
    if nested:
        assert run(grads)[0] == pytest.approx(16 + 12.0)  # x^3, and a constant of 16 times x + 1
    else:
        assert grads == [None]


def test_unconnected():
    x, y, i = tf.constant(1.0), tf.constant(2.0), tf.constant(3)
    result = loop(i, lambda k, s: tf.cond(y > 0, lambda: s * x, lambda: s), x)
    assert [g is None for g in tf.gradients(result, [x, y, i])] == [False, True, True]
    zeros = tf.gradients(result, [x, y], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert run(zeros) == [4.0, 0.0]


def test_integers_pass_no_gradient():
    x = tf.constant([1.0, 2.0])

    def body(i, n, s):
        return i + 1, n + tf.cast(s[0], tf.int32), s * tf.cast(n, tf.float32)

    _, n, s = tf.while_loop(lambda i, *_: i < 3, body, [0, 1, x])
    assert tf.gradients(tf.cast(n, tf.float32), x) == [None]
    assert run(tf.gradients(s, x))[0].tolist() == [1 * 2 * 3, 1 * 2 * 3]


# What they are made of --------------------------------------------------------------------------


@pytest.mark.parametrize("taken", [True, False])
def test_a_gradient_that_is_a_constant_is_dead_with_its_branch(taken):
    @tf.custom_gradient
    def seven(x):
        return tf.identity(x), lambda dy: tf.constant(7.0)

    x, p = tf.constant(2.0), tf.placeholder(tf.bool, [])
    direct = tf.cond(p, lambda: seven(x), lambda: x * 3.0)
    in_loop = loop(2, lambda i, s: tf.cond(p, lambda: seven(s), lambda: s * 3.0), x)
    assert run(tf.gradients(direct, x), {p: taken}) == [7.0 if taken else 3.0]
    assert run(tf.gradients(in_loop, x), {p: taken}) == [7.0 if taken else 9.0]


@pytest.mark.parametrize("taken", [True, False])
def test_a_gradient_of_values_from_outside_its_branch(taken):
    """The gradient of ``scaled`` uses ``w`` directly, not as an input of the branch."""
    w, x = tf.constant(5.0, tf.float64), tf.constant(2.0, tf.float64)
    p = tf.placeholder(tf.bool, [])

    @tf.custom_gradient
    def scaled(x):
        return tf.identity(x), lambda dy: dy * w * w

    y = tf.cond(p, lambda: scaled(x), lambda: x * 3.0)
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first + w, w)  # w is alive also when the branch is dead
    found = run([first, second], {p: taken})
    assert found == pytest.approx([25.0, 11.0] if taken else [3.0, 1.0])


def test_colocated_gradients():
    x = tf.constant([1.0, 2.0])
    with tf.device("/cpu:0"):
        y = loop(3, lambda i, s: tf.sin(s * x, name="sine"), x)
    (grad,) = tf.gradients(y, x, colocate_gradients_with_ops=True)
    assert run(grad).shape == (2,)
    made = [op for op in grad.graph.get_operations() if op.name.startswith("gradients/")]
    near = [op for op in made if b"loc:@while/sine" in op.colocation_groups()]
    assert any(op.type == "Cos" for op in near)


def test_each_call_keeps_its_own_history():
    x = tf.constant([0.3, 0.6], tf.float64)
    y = loop(3, lambda i, s: tf.sin(s * x), x)
    first, again = tf.gradients(y, x)[0], tf.gradients(y * y, x)[0]
    alone = run(again)
    together = run([first, again])
    np.testing.assert_allclose(together[1], alone)


def test_swapped_memory_and_parallel_iterations_change_nothing():
    x = tf.constant([0.3, 0.6], tf.float64)
    grads = [
        tf.gradients(loop(3, lambda i, s: tf.sin(s * x), x, **options), x)[0]
        for options in ({}, {"swap_memory": True, "parallel_iterations": 1})
    ]
    one, other = run(grads)
    np.testing.assert_array_equal(one, other)
    pushes = [op for op in x.graph.get_operations() if op.type == "StackPushV2"]
    assert {op.get_attr("swap_memory") for op in pushes} == {False, True}
