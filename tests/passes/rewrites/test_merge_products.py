"""Sums of products as one product, and only the used part of a split product."""

from __future__ import annotations

from collections import Counter

import numpy as np

import runnel as tf
from runnel.passes.program.prune import prune
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.rewrites.rewrite import optimize
from tests.both_tiers import run_both


def kinds(*fetches: tf.Tensor) -> Counter[str]:
    """How many nodes of each type the optimized program has."""
    program = optimize(explicit_reads(prune(list(fetches), [], [], frozenset())))
    return Counter(node.op_def.name for node in program.nodes)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_weight_that_is_used_often_has_one_product_as_its_gradient():
    w = tf.Variable(normal(8, 8) * 0.3)
    h = tf.constant(normal(2, 8, seed=1))
    for _ in range(5):
        h = tf.tanh(tf.matmul(h, w))
    [gradient] = tf.gradients(h, [w])
    found = kinds(gradient)
    assert found["MatMul"] == 5 + 4 + 1, "forward, back to each state, one for the weight"
    assert not found["AddN"]
    value = run_both(gradient, init=tf.global_variables_initializer())
    # The same by hand.
    weight, state = normal(8, 8) * 0.3, normal(2, 8, seed=1)
    states = [state]
    for _ in range(5):
        states.append(np.tanh(states[-1] @ weight))
    expected, back = np.zeros((8, 8)), np.ones((2, 8))
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        back = back * (1 - after**2)
        expected += before.T @ back
        back = back @ weight.T
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_terms_that_are_no_products_stay_in_the_sum():
    a, b = tf.Variable(normal(2, 4)), tf.Variable(normal(2, 4, seed=1))
    products = [tf.matmul(a, b, transpose_a=True), tf.matmul(b, a, transpose_a=True)]
    total = tf.add_n([*products, tf.ones([4, 4])])
    assert kinds(total)["MatMul"] == 1
    assert kinds(total)["AddN"] == 1
    x, y = normal(2, 4), normal(2, 4, seed=1)
    value = run_both(total, init=tf.global_variables_initializer())
    np.testing.assert_allclose(value, x.T @ y + y.T @ x + 1, rtol=1e-5, atol=1e-6)


def test_a_product_that_is_needed_itself_is_not_merged():
    a = tf.Variable(normal(2, 4))
    product = tf.matmul(a, a, transpose_a=True)
    total = tf.add_n([product, tf.matmul(a, tf.square(a), transpose_a=True)])
    assert kinds(total, product)["MatMul"] == 2


def test_a_long_product_is_not_joined_to_another():
    """Joining copies the operands: it pays only where the product is large beside them."""
    a, b = tf.Variable(normal(64, 4)), tf.Variable(normal(64, 4, seed=1))
    total = tf.add_n(
        [tf.matmul(a, b, transpose_a=True), tf.matmul(b, a, transpose_a=True), tf.ones([4, 4])]
    )
    assert kinds(total)["MatMul"] == 2


def test_only_the_used_part_of_a_split_product_is_computed():
    w = tf.Variable(normal(6, 3))
    data = tf.constant(normal(2, 2, seed=1))
    h = tf.Variable(normal(2, 4, seed=2))
    y = tf.matmul(tf.concat([data, h], 1), w)
    [gradient] = tf.gradients(y, [h])
    found = kinds(gradient)
    assert not found["SplitV"] and not found["Split"]
    assert found["Slice"] == found["MatMul"] == 1
    value = run_both(gradient, init=tf.global_variables_initializer())
    expected = np.ones((2, 3), np.float32) @ normal(6, 3)[2:].T
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_a_product_of_which_all_parts_are_used_is_split_as_before():
    w = tf.Variable(normal(4, 6))
    parts = tf.split(tf.matmul(tf.constant(normal(2, 4)), w), 2, 1)
    assert kinds(*parts)["MatMul"] == 1
    assert not kinds(*parts)["Slice"]
