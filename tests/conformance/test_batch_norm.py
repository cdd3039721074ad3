"""Normalisations against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import FLOATS, compare, compare_in, op_of

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(2, 3, 2, 4))
VECTOR = RNG.normal(size=4)
POSITIVE = RNG.uniform(0.5, 1.5, 4)


@pytest.mark.parametrize("dtype", ["float16", "float32"])  # all that TensorFlow has on a CPU
@pytest.mark.parametrize("settings", [(5, 1.0, 1.0, 0.5), (1, 0.5, 0.3, 0.75)])
def test_local_response_normalization(settings, dtype):
    compare_in(dtype, lambda tf, x: tf.nn.lrn(x, *settings), IMAGE)


@pytest.mark.parametrize("with_offset", [True, False])
def test_batch_normalization(with_offset):
    def build(tf, x, mean, variance, offset, scale):
        offset, scale = (offset, scale) if with_offset else (None, None)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    compare_in("float64", build, IMAGE, VECTOR, POSITIVE, VECTOR, POSITIVE, order=2, rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("training", [True, False])
def test_fused_batch_norm(training, dtype):
    kind, tolerance = FLOATS[dtype]

    def build(tf, x, scale, offset):
        mean, variance = (None, None) if training else (VECTOR.astype("f"), POSITIVE.astype("f"))
        return tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=training)[0]

    x = np.asarray(IMAGE).astype(kind)
    vectors = [VECTOR.astype(np.float32), POSITIVE.astype(np.float32)]
    compare(build, x, *vectors, rtol=2 * tolerance, atol=2 * tolerance)


def test_fused_batch_norm_second_order():
    def build(tf, x, scale, offset):
        return tf.square(tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.1)[0])

    compare_in("float32", build, IMAGE, VECTOR, POSITIVE, order=2, rtol=1e-3, atol=1e-3)


def test_fused_batch_norm_statistics():
    def build(tf, x):
        vectors = [tf.constant(v.astype(np.float32)) for v in (POSITIVE, VECTOR, VECTOR, POSITIVE)]
        return [
            *tf.nn.fused_batch_norm(x, *vectors[:2]),
            *tf.nn.fused_batch_norm(x, *vectors, exponential_avg_factor=0.25),
            *tf.nn.fused_batch_norm(x, *vectors, is_training=False),
        ]

    compare_in("float32", build, IMAGE, order=0)
    compare_in("float32", build, IMAGE[:1, :1, :1], order=0)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
@pytest.mark.parametrize("training", [True, False])
def test_fused_batch_norm_grad_op(version, training):
    """The gradient op by itself, as an imported graph holds it."""

    def build(tf, g, x, scale, mean, variance):
        spare = (tf.zeros([0]),) if version == "V3" else ()
        op = op_of(tf, f"FusedBatchNormGrad{version}")
        outputs = op(g, x, scale, mean, variance, *spare, is_training=training, epsilon=0.01)
        return list(outputs)[:3]

    compare_in("float32", build, IMAGE, IMAGE[::-1], POSITIVE, VECTOR, POSITIVE, order=0)
