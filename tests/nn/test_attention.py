"""Scaled dot-product attention against its formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(0)


def attended(q, k, v, allowed=None, added=0.0, scale=None):
    """The formula, in 64 bits."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale) + added
    allowed = np.broadcast_to(True if allowed is None else allowed, scores.shape)
    weights = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) @ v


def operands(*batch, queries=4, keys=5, depth=3, width=2):
    return (
        RNG.normal(size=(*batch, queries, depth)).astype(np.float32),
        RNG.normal(size=(*batch, keys, depth)).astype(np.float32),
        RNG.normal(size=(*batch, keys, width)).astype(np.float32),
    )


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_formula(batch):
    q, k, v = operands(*batch)
    result = tf.nn.scaled_dot_product_attention(q, k, v)
    assert result.shape.as_list() == [*batch, 4, 2]
    np.testing.assert_allclose(run_both(result), attended(q, k, v), rtol=1e-5, atol=1e-6)


def test_a_scale_of_its_own_and_batches_that_broadcast():
    q, k, v = operands(2, 3)
    result = tf.nn.scaled_dot_product_attention(q, k[:, :1], v[:1], scale=0.25)
    expected = attended(q, k[:, :1], v[:1], scale=0.25)
    np.testing.assert_allclose(run_both(result), expected, rtol=1e-5, atol=1e-6)


def test_masks():
    q, k, v = operands(2)
    allowed = RNG.random((2, 1, 5)) > 0.4
    allowed[:, :, 0] = True
    added = RNG.normal(size=(4, 5)).astype(np.float32)
    excluding = np.where(allowed, np.float32(0.5), np.float32(-np.inf))
    results = [
        tf.nn.scaled_dot_product_attention(q, k, v, mask=allowed),
        tf.nn.scaled_dot_product_attention(q, k, v, mask=added),
        tf.nn.scaled_dot_product_attention(q, k, v, mask=excluding),
        tf.nn.scaled_dot_product_attention(q, k, v, mask=allowed, is_causal=True),
    ]
    past = np.tril(np.ones((4, 5), bool))
    for result, expected in zip(
        run_both(results),
        [
            attended(q, k, v, allowed),
            attended(q, k, v, added=added),
            attended(q, k, v, allowed),
            attended(q, k, v, allowed & past),
        ],
        strict=True,
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    q, k, v = (tf.constant(x) for x in operands())
    mask = np.ones((4, 5), bool)
    mask[2] = False
    for given in (mask, np.where(mask, 0, -np.inf).astype(np.float32)):
        result = tf.nn.scaled_dot_product_attention(q, k, v, mask=given)
        values, *grads = run_both([result, *tf.gradients(result, [q, k, v])])
        np.testing.assert_array_equal(values[2], 0)
        assert all(np.isfinite(g).all() for g in grads)
        np.testing.assert_array_equal(grads[0][2], 0)


def test_large_scores_do_not_overflow():
    q, k, v = operands()
    result = run_both(tf.nn.scaled_dot_product_attention(1e4 * q, 1e4 * k, v))
    assert np.isfinite(result).all()


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_element_types(dtype):
    q, k, v = (x.astype(dtype.as_numpy_dtype) for x in operands(2))
    result = tf.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert result.dtype is dtype
    expected = attended(q, k, v, np.tril(np.ones((4, 5), bool)))
    tolerance = {"float64": 1e-12, "float16": 5e-3, "bfloat16": 4e-2}[dtype.name]
    values = run_both(result, rtol=tolerance, atol=tolerance).astype(np.float64)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


def test_shapes_that_are_not_known():
    arrays = operands(2)
    inputs = [tf.placeholder(tf.float32, [None, None, x.shape[-1]]) for x in arrays]
    result = tf.nn.scaled_dot_product_attention(*inputs, is_causal=True)
    expected = attended(*arrays, np.tril(np.ones((4, 5), bool)))
    values = run_both(result, dict(zip(inputs, arrays, strict=True)))
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_derivatives():
    mask = np.array([[True, False, True], [True, True, True]])
    assert_derivatives(
        lambda q, k, v: tf.nn.scaled_dot_product_attention(q, k, v, mask=mask),
        *(x.astype(np.float64) for x in operands(queries=2, keys=3)),
    )


def test_dropout_keeps_the_mean():
    q = k = np.zeros((1, 8), np.float32)
    v = np.ones((1, 1), np.float32)
    tf.set_random_seed(1)
    many = tf.nn.scaled_dot_product_attention(
        np.tile(q, (4000, 1, 1)), k[None], v[None], dropout_rate=0.25
    )
    with tf.Session() as sess:
        values = sess.run(many)
    assert set(np.unique(values.round(4))) == {0, np.float32(1 / 0.75).round(4)}
    assert abs(values.mean() - 1) < 0.05


def test_heads():
    q, k, v = operands(2, depth=6, width=4)
    result = tf.nn.multi_head_attention(q, k, v, num_heads=2, is_causal=True)
    assert result.shape.as_list() == [2, 4, 4]
    past = np.tril(np.ones((4, 5), bool))
    heads = [
        attended(*parts, past)
        for parts in zip(*(np.split(x, 2, axis=-1) for x in (q, k, v)), strict=True)
    ]
    np.testing.assert_allclose(run_both(result), np.concatenate(heads, -1), rtol=1e-5, atol=1e-6)


def test_mistakes():
    q, k, v = operands(2)
    attend = tf.nn.scaled_dot_product_attention
    with pytest.raises(ValueError, match="query and key must have the same depth"):
        attend(q[..., :2], k, v)
    with pytest.raises(ValueError, match="key and value must have the same number of keys"):
        attend(q, k, v[:, :3])
    with pytest.raises(ValueError, match="positions, depth"):
        attend(q[0, 0], k, v)
    with pytest.raises(TypeError, match="floats"):
        attend(np.zeros((2, 2), np.int32), np.zeros((2, 2), np.int32), np.zeros((2, 2), np.int32))
    with pytest.raises(ValueError, match="among 2 heads"):
        tf.nn.multi_head_attention(q, k, v, num_heads=2)
