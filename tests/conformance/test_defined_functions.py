"""Functions defined by ``Defun``, beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tensorflow
from tensorflow.python.framework import function as tensorflow_function

import runnel
from runnel.python.defined_functions import Defun as runnel_defun

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)


def plain(tf: Any, defun: Any) -> list[Any]:
    @defun(tf.float32, tf.float32)
    def mixed(x, y):
        return tf.sin(x) * y, x + y

    x = tf.constant(X)
    product, total = mixed(x, 2.0 * x)
    again, _ = mixed(product, x, name="again")
    return [product, total, again, *tf.gradients([again, total], x)]


def without_types(tf: Any, defun: Any) -> list[Any]:
    @defun()
    def squared(x):
        return x * x

    x = tf.constant(X)
    return [squared(x), tf.gradients(squared(squared(x)), x)[0]]


def gradient_in_python(tf: Any, defun: Any) -> list[Any]:
    def clipped(op, grad):
        return tf.clip_by_value(grad * op.inputs[0], -1.0, 1.0) + op.outputs[0]

    @defun(tf.float32, python_grad_func=clipped, shape_func=lambda op: [op.inputs[0].get_shape()])
    def cubed(x):
        return x * x * x

    x = tf.constant(X)
    y = cubed(x)
    return [y, tf.gradients(2.0 * y, x)[0]]


def gradient_as_a_function(tf: Any, defun: Any) -> list[Any]:
    @defun(tf.float32, tf.float32, tf.float32)
    def backwards(x, y, grad):
        return grad * y * 3.0, grad - x

    @defun(tf.float32, tf.float32, grad_func=backwards)
    def forwards(x, y):
        return x * y

    x, y = tf.constant(X), tf.constant(X[::-1].copy())
    z = forwards(x, y)
    return [z, *tf.gradients(z, [x, y])]


def with_effects(tf: Any, defun: Any) -> list[Any]:
    count = tf.get_variable("count", initializer=0.0, use_resource=True)

    @defun(tf.float32)
    def counted(x):
        with tf.control_dependencies([count.assign_add(1.0)]):
            return tf.identity(x) * 2.0

    @defun()
    def quiet():
        return 3.0

    return [counted(tf.constant(X)), quiet()]


def captured(tf: Any, defun: Any) -> list[Any]:
    weights = tf.get_variable("weights", initializer=X.T.copy(), use_resource=True)
    offset = tf.constant(5.0)

    @defun(tf.float32)
    def layer(x):
        return tf.matmul(x, weights) + offset

    x = tf.constant(X)
    y = layer(x)
    return [y, *tf.gradients(y, [x, weights])]


def in_a_loop(tf: Any, defun: Any) -> list[Any]:
    @defun(tf.float32, shape_func=lambda op: [op.inputs[0].get_shape()])
    def halved(x):
        return x / 2.0

    x = tf.constant(X)
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, halved(v) + 1.0), [0, x])[1]
    return [y, tf.gradients(y, x)[0]]


PROGRAMS = [
    plain,
    without_types,
    gradient_in_python,
    gradient_as_a_function,
    with_effects,
    captured,
    in_a_loop,
]


def values(tf: Any, defun: Any, program: Any) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as sess:
        fetches = program(tf, defun)
        sess.run(tf.global_variables_initializer())
        found = sess.run(fetches)
        return [*found, *sess.run(tf.global_variables())]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_defined_function_is_that_of_tensorflow(program):
    expected = values(tensorflow, tensorflow_function.Defun, program)
    found = values(runnel, runnel_defun, program)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_number_of_arguments_is_checked():
    for tf, defun in ((runnel, runnel_defun), (tensorflow, tensorflow_function.Defun)):
        with tf.Graph().as_default():
            named = defun(tf.float32)(lambda x: x)
            with pytest.raises(ValueError, match=r"argument"):
                named(1.0, 2.0)


def test_it_is_found_where_programs_import_it():
    from runnel.python.framework import function

    assert function.Defun is runnel_defun
