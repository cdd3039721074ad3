"""Activation functions and their gradient ops against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import EVERY_FLOAT, compare, compare_in, op_of

pytest.importorskip("tensorflow")


ACTIVATIONS = [
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "softplus",
    "softsign",
    "swish",
    "crelu",
]
KINKS = np.array([[-200.0, -6.0, -1.0, -0.5, -0.1], [0.0, 1e-3, 2.0, 6.0, 200.0]])


@EVERY_FLOAT
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype):
    compare_in(dtype, lambda tf, x: getattr(tf.nn, name)(x), KINKS)


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "elu", "selu", "softplus"])
def test_activations_second_order(name):
    compare_in("float64", lambda tf, x: getattr(tf.nn, name)(x), KINKS, order=2)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16"])
def test_rectifiers_of_integers(dtype):
    x = np.array([0, 3, 6, 100], dtype) if dtype[0] == "u" else np.array([-100, -1, 3, 100], dtype)
    compare(lambda tf, t: [tf.nn.relu(t), tf.nn.relu6(t)], x, order=0)


def test_log_sigmoid():
    compare_in("float32", lambda tf, x: tf.log_sigmoid(x), KINKS, order=2)


GRADIENT_OPS = [
    *("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad"),
    *("SoftsignGrad",),
]


@pytest.mark.parametrize("name", GRADIENT_OPS)
def test_gradient_ops_by_themselves(name):
    def build(tf, g, x):
        return op_of(tf, name)(g, x)

    compare_in("float32", build, KINKS[::-1], KINKS, order=0)
