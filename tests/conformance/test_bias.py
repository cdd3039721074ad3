"""Adding biases against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import EVERY_FLOAT, compare_in, op_of

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
CUBE = RNG.normal(size=(2, 3, 4))
IMAGE = RNG.normal(size=(2, 3, 2, 4))
VECTOR = RNG.normal(size=4)


@EVERY_FLOAT
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_bias_add(data_format, dtype):
    bias = VECTOR[: IMAGE.shape[-1 if data_format == "NHWC" else 1]]
    order = 2 if dtype == "float64" else 1
    compare_in(
        dtype,
        lambda tf, v, b: tf.square(tf.nn.bias_add(v, b, data_format)),
        IMAGE,
        bias,
        order=order,
    )


def test_bias_add_shapes():
    def build(tf, v, b):
        return tf.nn.bias_add(v, b)

    compare_in("float32", build, X, X[0], shapes=[[None, None], [5]])
    compare_in("float32", build, X, X[0], shapes=[[None, 5], [None]])
    compare_in("float32", lambda tf, v, b: tf.nn.bias_add(v, b, "NCHW"), CUBE, VECTOR[:3])


def test_layers():
    x, w, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)), VECTOR
    compare_in("float32", lambda tf, *args: tf.nn.xw_plus_b(*args), x, w, b)
    compare_in("float32", lambda tf, *args: tf.nn.relu_layer(*args), x, w, b)


@EVERY_FLOAT
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_bias_add_grad_op(data_format, dtype):
    def build(tf, g):
        return op_of(tf, "BiasAddGrad")(g, data_format=data_format)

    compare_in(dtype, build, IMAGE, order=0)
