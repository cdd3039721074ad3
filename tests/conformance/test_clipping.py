"""Clipping against TensorFlow."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_program import compare_graphs
from tests.conformance.side_by_side import compare

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 4)) * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_by_value(dtype):
    compare(
        lambda tf, x: [
            tf.clip_by_value(x, -1.0, 1.0),
            tf.clip_by_value(x, tf.constant([-1.0, -2.0, -3.0, -4.0], x.dtype), 2.0),
        ],
        X.astype(dtype),
        order=2,
    )
    compare(lambda tf, x: tf.clip_by_value(x, -2, 3), np.arange(-5, 5), order=0)


def test_the_op():
    def build(tf, x, low, high):
        if hasattr(tf, "raw_ops"):
            return tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)
        return tf.get_op_def("ClipByValue")(x, low, high)

    compare(build, X, np.array(-1.0), np.array(1.5))
    compare(build, X, np.full((3, 4), -1.0), np.full((3, 4), 1.5))


@pytest.mark.parametrize("norm", [0.5, 100.0])
def test_by_norm(norm):
    compare(
        lambda tf, x: [
            *(tf.clip_by_norm(x, norm), tf.clip_by_norm(x, norm, axes=[1])),
            *(tf.clip_by_average_norm(tf.cast(x, tf.float32), norm), tf.norm(x)),
        ],
        X,
        rtol=1e-6,
    )
    compare(lambda tf, x: tf.clip_by_norm(x, norm), np.zeros(3))


@pytest.mark.parametrize("norm", [0.5, 100.0])
def test_by_global_norm(norm):
    def build(tf, x, y):
        clipped, total = tf.clip_by_global_norm([x, None, y], norm)
        assert clipped[1] is None
        given, _ = tf.clip_by_global_norm([x], norm, use_norm=tf.constant(3.0))
        return [clipped[0], clipped[2], total, tf.global_norm([y, None]), *given]

    compare(build, X.astype(np.float32), RNG.normal(size=5).astype(np.float32), rtol=1e-5)


def test_a_norm_that_is_not_finite_shows():
    x = np.array([1.0, np.inf], np.float32)
    compare(lambda tf, t: tf.clip_by_global_norm([t], 1.0)[0], x, order=0)


def test_sparse_gradients_stay_sparse():
    def build(tf, values, indices):
        slices = tf.IndexedSlices(values, indices, tf.constant([5, 4]))
        out = [tf.clip_by_value(slices, -1.0, 1.0), tf.clip_by_norm(slices, 0.5)]
        clipped, norm = tf.clip_by_global_norm([slices], 0.5)
        out += clipped
        assert all(isinstance(o, tf.IndexedSlices) for o in out)
        return [norm, *(part for o in out for part in (o.values, o.indices, o.dense_shape))]

    compare(build, X.astype(np.float32), np.array([0, 4, 2], np.int32), order=0)


def test_graphs():
    def program(tf):
        x = tf.placeholder(tf.float32, [3], name="x")
        _ = [tf.clip_by_value(x, 0.0, 1.0), tf.clip_by_value(x, x, x, name="named")]

    compare_graphs(program)
