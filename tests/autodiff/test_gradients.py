"""Symbolic gradients: paths, aggregation, sparsity, higher orders, errors."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


def test_the_gradient_of_a_sum_over_several_paths():
    x = tf.placeholder(tf.float32, [3])
    y = x * x + 3.0 * x
    (grad,) = tf.gradients(y, x)
    np.testing.assert_allclose(run_both(grad, {x: [1.0, 2.0, 3.0]}), [5.0, 7.0, 9.0])


def test_several_ys_and_xs_and_weights():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    grads = tf.gradients([a * b, b * b], [a, b], grad_ys=[2.0, 10.0])
    assert run_both(grads, {a: 3.0, b: 4.0}) == [8.0, 86.0]


def test_gradients_of_any_order():
    x = tf.placeholder(tf.float64, [])
    derivative = tf.sin(x)
    expected = [np.sin, np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v)]
    for order in range(1, 7):
        (derivative,) = tf.gradients(derivative, x)
        assert run_both(derivative, {x: 0.7}) == pytest.approx(expected[order % 4](0.7))


def test_hessians():
    x = tf.placeholder(tf.float64, [2])
    y = x[0] * x[0] * x[1] + x[1] * x[1]
    (hessian,) = tf.hessians(y, x)
    np.testing.assert_allclose(run_both(hessian, {x: [3.0, 5.0]}), [[10.0, 6.0], [6.0, 2.0]])


def test_no_path_gives_none_or_zeros():
    x, z = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    assert tf.gradients(x * 2.0, [z]) == [None]
    (zeros,) = tf.gradients(x * 2.0, z, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    np.testing.assert_array_equal(run_both(zeros, {x: [1, 2], z: [3, 4]}), [0, 0])


def test_an_x_that_is_also_a_y():
    x = tf.placeholder(tf.float32, [])
    grads = tf.gradients([x, x * x], [x])
    assert run_both(grads, {x: 3.0}) == [7.0]
    middle = x * 2.0
    outer, inner = tf.gradients(middle * 5.0, [x, middle])
    assert run_both([outer, inner], {x: 1.0}) == [10.0, 5.0]


def test_stop_gradients_and_stop_gradient():
    x = tf.placeholder(tf.float32, [])
    a = x * 2.0
    b = a * x
    partial = tf.gradients(b, [x, a], stop_gradients=[a])
    total = tf.gradients(b, x)[0]
    cut = tf.gradients(tf.stop_gradient(a) * x, x)[0]
    assert run_both([*partial, total, cut], {x: 3.0}) == [6.0, 3.0, 12.0, 6.0]


def test_integers_carry_no_gradient():
    x = tf.placeholder(tf.float32, [])
    y = tf.cast(tf.cast(x, tf.int32), tf.float32) * x
    assert run_both(tf.gradients(y, x)[0], {x: 2.5}) == 2.0
    assert tf.gradients(tf.constant(1), x) == [None]


def test_the_gradient_of_a_gather_stays_sparse_and_adds_up():
    table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
    ids = tf.constant([1, 1, 3])
    rows = tf.gather(table, ids)
    ys = [tf.reduce_sum(rows * rows), tf.reduce_sum(tf.gather(table, [0]))]
    (grad,) = tf.gradients(ys, table)
    assert isinstance(grad, tf.IndexedSlices)
    dense = run_both(tf.convert_to_tensor(grad), init=table.initializer)
    np.testing.assert_array_equal(dense, [[1, 1, 1], [12, 16, 20], [0, 0, 0], [18, 20, 22]])


def test_sparse_and_dense_gradients_of_one_variable_make_a_dense_sum():
    table = tf.Variable(tf.ones([3, 2]))
    y = tf.reduce_sum(tf.gather(table, [2])) + tf.reduce_sum(table * 10.0)
    (grad,) = tf.gradients(y, table)
    assert isinstance(grad, tf.Tensor)
    found = run_both(grad, init=table.initializer)
    np.testing.assert_array_equal(found, [[10, 10], [10, 10], [11, 11]])


def test_outputs_without_a_gradient_are_zero_for_the_others():
    x = tf.placeholder(tf.float32, [4])
    first, _ = tf.split(x, 2)
    (grad,) = tf.gradients(first, x)
    np.testing.assert_array_equal(run_both(grad, {x: [1, 2, 3, 4]}), [1, 1, 0, 0])


def test_a_missing_gradient_names_the_operation_and_its_line():
    opaque = tf.register_op("OpaqueForThisTest", inputs="x: float", outputs="y: float")
    x = tf.placeholder(tf.float32, [2])
    y = opaque(x)
    with pytest.raises(LookupError, match="No gradient is defined.*OpaqueForThisTest") as e:
        tf.gradients(y, x)
    assert __file__ in str(e.value)


def test_a_wrong_gradient_function_is_explained():
    @tf.RegisterGradient("TwoForOne")
    def _(op, grad):
        return [grad, grad]

    @tf.RegisterGradient("WrongShape")
    def _(op, grad):
        return tf.zeros([7])

    x = tf.placeholder(tf.float32, [2])
    graph = tf.get_default_graph()
    with graph.gradient_override_map({"Exp": "TwoForOne"}):
        a = tf.exp(x)
    with graph.gradient_override_map({"Exp": "WrongShape"}):
        b = tf.exp(x)
    with pytest.raises(ValueError, match="2 gradients for 1 inputs"):
        tf.gradients(a, x)
    with pytest.raises(ValueError, match=r"shape \(7,\)"):
        tf.gradients(b, x)


def test_tensors_of_different_graphs_are_refused():
    x = tf.placeholder(tf.float32, [])
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32, [])
        with pytest.raises(ValueError, match="another graph"):
            tf.gradients(other * 2.0, x)


def test_grad_ys_are_checked():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match="2 grad_ys for 1 ys"):
        tf.gradients(x * 2.0, x, grad_ys=[1.0, 1.0])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        tf.gradients(x * 2.0, x, grad_ys=tf.ones([3]))


def test_colocation_follows_the_forward_operation():
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(x, name="forward")
    (grad,) = tf.gradients(y * 2.0, x, colocate_gradients_with_ops=True)
    assert b"loc:@forward" in grad.op.colocation_groups()


def test_a_gradient_through_ten_thousand_operations():
    x = tf.placeholder(tf.float32, [])
    y = x
    for _ in range(10_000):
        y = tf.identity(y)
    with tf.Session() as sess:
        assert sess.run(tf.gradients(y * 2.0, x)[0], {x: 1.0}) == 2.0


def test_custom_gradient():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = tf.placeholder(tf.float32, [])
    value, grad = run_both([log1pexp(x), tf.gradients(log1pexp(x), x)[0]], {x: 100.0})
    assert grad == 1.0 and np.isfinite(value)


def test_gradient_checker_accepts_right_and_rejects_wrong_gradients():
    @tf.RegisterGradient("Wrong")
    def _(op, grad):
        return grad * 3.0

    x = tf.placeholder(tf.float64, [2, 3])
    w = tf.placeholder(tf.float64, [3, 2])
    y = tf.tanh(tf.matmul(x, w))
    with tf.get_default_graph().gradient_override_map({"Tanh": "Wrong"}):
        wrong = tf.tanh(x)
    z = tf.placeholder(tf.complex128, [2])
    with tf.Session():
        assert tf.test.compute_gradient_error([x, w], [[2, 3], [3, 2]], y, [2, 2]) < 1e-6
        assert tf.test.compute_gradient_error(x, [2, 3], wrong, [2, 3]) > 0.5
        theory, numeric = tf.test.compute_gradient(x, [2, 3], tf.reduce_sum(x, 1), [2])
        assert theory.shape == numeric.shape == (6, 2)
        assert tf.test.compute_gradient_error(z, [2], z * z, [2]) < 1e-6


def test_an_input_that_was_replaced_by_a_newer_tensor_is_differentiated_through():
    x = tf.placeholder(tf.float32, [])
    a = tf.identity(x)
    y = a * a
    cube = x * x * x
    a.op._update_input(0, cube)
    assert run_both([y, tf.gradients(y, x)[0]], {x: 2.0}) == [64.0, 192.0]  # x ** 6, 6 x ** 5


def test_a_custom_gradient_of_several_arguments_and_of_a_copied_graph():
    @tf.custom_gradient
    def product(a, b):
        return a * b, lambda dy: (dy * b * 10.0, dy * a * 100.0)

    x, y = tf.constant(2.0, name="x"), tf.constant(3.0, name="y")
    z = tf.identity(product(x, y), name="z")
    assert run_both(tf.gradients(z, [x, y])) == [30.0, 200.0]
    original = tf.get_default_graph()
    with tf.Graph().as_default():
        z, x = tf.import_graph_def(original.as_graph_def(), return_elements=["z:0", "x:0"])
        with pytest.raises(ValueError):  # its gradient is made of the first graph's tensors
            tf.gradients(z, x)
