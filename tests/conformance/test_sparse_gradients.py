"""A gradient that TensorFlow keeps sparse is sparse here: optimizers leave the other rows alone."""

import numpy as np
import pytest

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, session

pytest.importorskip("tensorflow")

THROUGH = {
    "nothing": lambda tf, t: t,
    "add_scalar": lambda tf, t: t + 1.0,
    "add_row": lambda tf, t: t + np.ones(4),
    "add_itself": lambda tf, t: t + t,
    "subtract": lambda tf, t: 1.0 - t,
    "negative": lambda tf, t: -t,
    "ensure_shape": lambda tf, t: tf.ensure_shape(t, [6, 4]),
    "print": lambda tf, t: tf.Print(t, []),
    "default": lambda tf, t: tf.placeholder_with_default(tf.identity(t), [6, 4]),
    "scatter_add": lambda tf, t: tf.tensor_scatter_nd_add(
        tf.identity(t), [[1]], np.full((1, 4), 0.5)
    ),
    "scatter_sub": lambda tf, t: tf.tensor_scatter_nd_sub(
        tf.identity(t), [[1]], np.full((1, 4), 0.5)
    ),
    "rows_before": lambda tf, t: tf.concat([np.ones((2, 4)), t], 0),
    "rows_twice": lambda tf, t: tf.concat([t, t[:2], t], 0),
    "columns": lambda tf, t: tf.concat([t, t * 2.0], 1),
    "cast": lambda tf, t: tf.cast(t, tf.float32),
    "product": lambda tf, t: t * 2.0,
    "added_to_more": lambda tf, t: t + np.ones((2, 6, 4)),
    "check": lambda tf, t: tf.check_numerics(t, "t"),
}

LEVELS = {name: (INTERPRETED, COMPILED) for name in ("subtract", "rows_before", "columns")}


def trained(tf, through, open_session):
    """Is the gradient sparse? The table after steps of momentum, over two sets of rows."""
    with tf.Graph().as_default():
        start = np.linspace(-1, 1, 24).reshape(6, 4)
        t = tf.get_variable("t", initializer=start, use_resource=True)
        rows = tf.placeholder(tf.int32, [None])
        loss = tf.reduce_sum(tf.sin(tf.gather(through(tf, t), rows)))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        ((gradient, _),) = pairs = optimizer.compute_gradients(loss, [t])
        train = optimizer.apply_gradients(pairs)
        with open_session() as sess:
            sess.run(tf.global_variables_initializer())
            for fed in ([1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0]):
                sess.run(train, {rows: fed})
            return hasattr(gradient, "indices"), sess.run(t)


@pytest.mark.parametrize("name", THROUGH)
def test_rows_without_a_gradient_are_left_alone_where_tensorflow_does(name):
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    sparse, expected = trained(tensorflow, THROUGH[name], tensorflow.Session)
    for level in LEVELS.get(name, (INTERPRETED,)):
        found = trained(runnel, THROUGH[name], lambda level=level: session(level))
        assert found[0] == sparse
        np.testing.assert_allclose(found[1], expected, 1e-6)
