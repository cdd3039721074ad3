"""A node bound to its kernel: a function over flat inputs."""

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.kernel_call import bind, fail_now, select
from runnel.passes.program.prune import prune


def bound(tensor, xp=np):
    (node,) = [n for n in prune([tensor], [], []).nodes if n.op is tensor.op]
    return bind(select(node, "CPU", "interpreted"), node, xp, fail_now)


def test_a_kernel_that_only_calls_a_function_of_its_namespace_is_that_function():
    x = tf.placeholder(tf.float32, [2])
    assert bound(x + x) is np.add
    assert bound(tf.tanh(x)) is np.tanh
    assert bound(x < x) is np.less


@pytest.mark.parametrize(
    "function, expected",
    [(tf.square, [4, 9]), (tf.sigmoid, 1 / (1 + np.exp([-2.0, 3.0])))],
    ids=["square", "sigmoid"],
)
def test_a_kernel_that_does_more_is_called(function, expected):
    x = tf.placeholder(tf.float32, [2])
    value = np.array([2, -3], np.float32)
    np.testing.assert_allclose(bound(function(x))(value), expected, rtol=1e-6)


def test_a_kernel_gets_its_list_inputs_as_lists():
    x = tf.placeholder(tf.float32, [1])
    one, two = np.float32([1]), np.float32([2])
    call = bound(tf.concat([x, x], 0))
    np.testing.assert_array_equal(call(one, two, np.int32(0)), [1, 2])
