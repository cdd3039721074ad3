"""Reductions, running totals, segments, and the places of extreme values."""

from __future__ import annotations

import numpy as np

from tests.programs.program import integers, op, values

X = values(2, 3, 4)
POSITIVE = values(2, 3, 4, low=0.2, high=2.0, seed=1)
I = integers(2, 3, low=-5, high=6)
BOOLS = integers(2, 3, high=2, seed=1).astype(bool)
EMPTY = np.zeros((0, 3), np.float32)
ROWS = values(5, 3, seed=2)
SORTED_IDS = np.array([0, 0, 1, 3, 3], np.int32)
IDS = np.array([2, 0, -1, 0, 3], np.int32)

PROGRAMS = {
    "sum": op(lambda tf, x: [tf.reduce_sum(x), tf.reduce_sum(x, 1), tf.reduce_sum(x, [0, 2])], X),
    "sum_keepdims": op(lambda tf, x: tf.reduce_sum(x, [-1, 0], keepdims=True), X),
    "mean": op(lambda tf, x: [tf.reduce_mean(x), tf.reduce_mean(x, -1)], X),
    "mean_integer": op(lambda tf, i: [tf.reduce_mean(i), tf.reduce_sum(i, 0)], I),
    "prod": op(lambda tf, x: [tf.reduce_prod(x), tf.reduce_prod(x, 1)], POSITIVE),
    "prod_with_zeros": op(
        lambda tf, x: tf.reduce_prod(x, 1), np.array([[2, 0, 3], [0, 0, 5], [1, 2, 3]], np.float32)
    ),
    "max_min": op(lambda tf, x: [tf.reduce_max(x, 1), tf.reduce_min(x, [0, 1])], X),
    "max_with_ties": op(
        lambda tf, x: tf.reduce_max(x, 1), np.array([[1, 3, 3], [2, 2, 2]], np.float32)
    ),
    "all_any": op(
        lambda tf, b: [tf.reduce_all(b, 1), tf.reduce_any(b, 0), tf.reduce_all(b)], BOOLS
    ),
    "logsumexp": op(lambda tf, x: [tf.reduce_logsumexp(x), tf.reduce_logsumexp(x * 50, 2)], X),
    "std_variance": op(
        lambda tf, x: [tf.math.reduce_std(x, 1), tf.math.reduce_variance(x, [0, 2])], X
    ),
    "euclidean_norm": op(lambda tf, x: tf.math.reduce_euclidean_norm(x, 1), X),
    "empty": op(
        lambda tf, x: [tf.reduce_sum(x, 0), tf.reduce_max(x, 0), tf.reduce_prod(x)],
        EMPTY,
        gradient=False,
    ),
    "count_nonzero": op(lambda tf, i: [tf.count_nonzero(i), tf.count_nonzero(i, 1)], I),
    "norm": op(lambda tf, x: [tf.norm(x), tf.norm(x, ord=1, axis=1), tf.norm(x, axis=-1)], X),
    "global_norm": op(lambda tf, x, r: tf.global_norm([x, r]), X, ROWS),
    "argmax_argmin": op(
        lambda tf, x: [tf.argmax(x, 1), tf.argmin(x, -1, output_type=tf.int32)], X, gradient=False
    ),
    "cumsum": op(lambda tf, x: [tf.cumsum(x, 1), tf.cumsum(x, 2, exclusive=True, reverse=True)], X),
    "cumprod": op(lambda tf, x: tf.cumprod(x, 2, exclusive=True), POSITIVE),
    "moments": op(lambda tf, x: tf.nn.moments(x, [0, 2]), X),
    "moments_keepdims": op(lambda tf, x: tf.nn.moments(x, [1], keep_dims=True), X),
    "segment_sum": op(lambda tf, r, i: tf.segment_sum(r, i), ROWS, SORTED_IDS, gradient=False),
    "segment_mean_max": op(
        lambda tf, r, i: [tf.segment_mean(r, i), tf.segment_max(r, i)],
        ROWS,
        SORTED_IDS,
        gradient=False,
    ),
    "unsorted_segment_sum": op(lambda tf, r, i: tf.unsorted_segment_sum(r, i, 4), ROWS, IDS),
    "unsorted_segment_max": op(lambda tf, r, i: tf.unsorted_segment_max(r, i, 4), ROWS, IDS),
    "unsorted_segment_prod": op(
        lambda tf, r, i: tf.unsorted_segment_prod(r, i, 4), ROWS, IDS, gradient=False
    ),
    "bincount": op(lambda tf, i: tf.bincount(i, minlength=8), np.array([1, 5, 1, 2], np.int32)),
    "top_k": op(lambda tf, x: tf.nn.top_k(x, 2), X),
    "in_top_k": op(
        lambda tf, r, i: tf.nn.in_top_k(r, i, 2),
        ROWS,
        np.array([0, 1, 2, 0, 1], np.int32),
        gradient=False,
    ),
    "unique": op(lambda tf, i: tf.unique(tf.reshape(i, [-1])), I),
}
