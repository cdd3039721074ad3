"""Gradients of tensors of which neither the rank nor the size is known while they are built.

The same function of a tensor of known shape is the oracle: its gradients are tested elsewhere.
"""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

X = np.random.default_rng(0).uniform(0.2, 0.9, (2, 3, 4))
ROW = np.random.default_rng(1).uniform(-1, 1, 4)

FUNCTIONS = {
    "abs": tf.abs,
    "add a row": lambda x: x + ROW,
    "add itself, transposed": lambda x: x + tf.transpose(x, [0, 1, 2]),
    "batch matmul": lambda x: tf.matmul(x, x, transpose_b=True),
    "bias_add": lambda x: tf.nn.bias_add(x, tf.reduce_sum(x, [0, 1])),
    "boolean_mask": lambda x: tf.boolean_mask(x, [True, False]),
    "boolean_mask along an axis": lambda x: tf.boolean_mask(x, [True, False, True], axis=1),
    "broadcast_to": lambda x: tf.broadcast_to(x, [5, 2, 3, 4]),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 0.5),
    "clip_by_value": lambda x: tf.clip_by_value(x, 0.3, 0.7),
    "concat": lambda x: tf.concat([x, x * x], 1),
    "concat from the end": lambda x: tf.concat([x, x * x], -1),
    "cumprod": lambda x: tf.cumprod(x, 1),
    "cumsum": lambda x: tf.cumsum(x, -1, reverse=True),
    "diag_part": lambda x: tf.matrix_diag_part(x),
    "dynamic_partition": lambda x: tf.dynamic_partition(x, [1, 0], 2)[1],
    "dynamic_stitch": lambda x: tf.dynamic_stitch([[1, 0], [2, 3]], [x, x * x]),
    "einsum": lambda x: tf.einsum("abc,abd->acd", x, x),
    "expand_dims": lambda x: tf.expand_dims(x, 1),
    "fill": lambda x: tf.fill(tf.shape(x), tf.reduce_sum(x)),
    "gather": lambda x: tf.gather(x, [1, 1, 0]),
    "gather a scalar index": lambda x: tf.gather(x, 1, axis=1),
    "gather along an axis": lambda x: tf.gather(x, [[2, 0], [1, 1]], axis=1),
    "gather from the end": lambda x: tf.gather(x, [3, 1, 1], axis=-1),
    "gather in batches": lambda x: tf.gather(x, [[0, 2], [1, 1]], axis=1, batch_dims=1),
    "gather in batches from the end": lambda x: tf.gather(
        x, [[0, 2], [1, 1]], axis=-1, batch_dims=-1
    ),
    "gather_nd": lambda x: tf.gather_nd(x, [[1, 2], [0, 0]]),
    "index": lambda x: x[1, :, -1],
    "index with an ellipsis": lambda x: x[..., 1:3],
    "index with steps": lambda x: x[::-1, 1:, ::2],
    "l2_loss": tf.nn.l2_loss,
    "l2_normalize": lambda x: tf.nn.l2_normalize(x, -1),
    "log_softmax": tf.nn.log_softmax,
    "max of an axis": lambda x: tf.reduce_max(x, 1),
    "maximum": lambda x: tf.maximum(x, tf.reverse(x, [2])),
    "mean": tf.reduce_mean,
    "mean of axes": lambda x: tf.reduce_mean(x, [0, -1]),
    "mirror_pad": lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 0]], "REFLECT"),
    "moments": lambda x: tf.nn.moments(x, [0, 2])[1],
    "norm": lambda x: tf.norm(x, axis=1),
    "one_hot": lambda x: x * tf.one_hot(tf.argmax(x, 2), 4, dtype=tf.float64),
    "pad": lambda x: tf.pad(x, [[0, 1], [2, 0], [0, 0]]),
    "pow": lambda x: x**x,
    "prod": tf.reduce_prod,
    "prod of an axis": lambda x: tf.reduce_prod(x, 1),
    "prod of axes": lambda x: tf.reduce_prod(x, [-1, 0], keepdims=True),
    "reshape": lambda x: tf.reshape(x, [-1, 3]),
    "reshape to a computed shape": lambda x: tf.reshape(x, tf.reverse(tf.shape(x), [0])),
    "reverse": lambda x: tf.reverse(x, [-1]),
    "reverse_sequence": lambda x: tf.reverse_sequence(x, [2, 1], seq_axis=1, batch_axis=0),
    "roll": lambda x: tf.roll(x, [1], [2]),
    "scatter_nd": lambda x: tf.scatter_nd([[1], [0]], x, [3, 3, 4]),
    "segment_max": lambda x: tf.segment_max(x, [0, 0]),
    "segment_mean": lambda x: tf.segment_mean(x, [0, 0]),
    "segment_sum": lambda x: tf.segment_sum(x, [0, 2]),
    "select": lambda x: tf.where(x > 0.5, x, x * x),
    "slice": lambda x: tf.slice(x, [0, 1, 0], [-1, 2, 3]),
    "softmax": tf.nn.softmax,
    "softmax_cross_entropy": lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.stop_gradient(tf.nn.softmax(x)), logits=x
    ),
    "sort": tf.sort,
    "split": lambda x: tf.split(x, [1, 2], 1)[1],
    "split in equal parts": lambda x: tf.split(x, 2, -1)[0],
    "squeeze": lambda x: tf.squeeze(x[:1], [0]),
    "stack": lambda x: tf.stack([x, x * x], -1),
    "std": tf.math.reduce_std,
    "sum of axes": lambda x: tf.reduce_sum(x, [0, 2]),
    "sum, logarithm of exponentials": lambda x: tf.reduce_logsumexp(x, [1]),
    "tensor_scatter": lambda x: tf.tensor_scatter_update(x, [[1]], [x[0]]),
    "tile": lambda x: tf.tile(x, [1, 2, 1]),
    "top_k": lambda x: tf.nn.top_k(x, 2).values,
    "transpose": lambda x: tf.transpose(x, [2, 0, 1]),
    "transpose as a whole": tf.transpose,
    "unique": lambda x: tf.gather(x, tf.unique(tf.cast(x[:, 0, 0] > 0.5, tf.int32)).idx),
    "unsorted_segment_max": lambda x: tf.unsorted_segment_max(x, [1, 1], 3),
    "unsorted_segment_sum": lambda x: tf.unsorted_segment_sum(x, [1, 1], 3),
    "unstack": lambda x: tf.unstack(x, 3, axis=1)[1],
    "where": lambda x: tf.gather_nd(x, tf.where(x > 0.5)),
}


def derivatives(function, shape, level):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, shape)
        (first,) = tf.gradients(tf.sin(function(x)), x)
        first = tf.convert_to_tensor(first)
        (second,) = tf.gradients(tf.sin(first), x)
        with session(level, graph) as sess:
            return sess.run([first, tf.convert_to_tensor(second)], {x: X})


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [None, (None, None, None), (None, 3, 4)])
def test_a_gradient_is_the_same_whatever_is_known_of_the_shape(name, shape):
    expected = derivatives(FUNCTIONS[name], X.shape, INTERPRETED)
    found = derivatives(FUNCTIONS[name], shape, INTERPRETED)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_gradient_is_the_same_of_an_unknown_rank(name):
    expected = derivatives(FUNCTIONS[name], X.shape, INTERPRETED)
    found = derivatives(FUNCTIONS[name], None, COMPILED)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
