"""Generated programs of conditionals and loops, with first and second derivatives.

TensorFlow's graphs refuse second derivatives of their loops (or, with its later control flow, take
a second to build one). So the oracle is TensorFlow run eagerly: the same operations, with Python's
control flow under ``tf.cond`` and ``tf.while_loop``, and tapes for the derivatives.
"""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference
from hypothesis import HealthCheck, given, seed, settings
from tensorflow.python.eager import context

import runnel
from tests.conformance.generated_control_flow import Builder, programs
from tests.execution_modes import forced

reference.disable_v2_behavior()

X = np.array([0.7, -0.4])
Y = np.array([-0.2, 0.9])


def scope_of(x: Any, y: Any) -> dict[str, Any]:
    return {"x": x, "y": y, "s": x * y, "i": y + 0.1}


def ours(program: Any) -> list[np.ndarray]:
    tf = runnel
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs = x, y = tf.placeholder(tf.float64, [2]), tf.placeholder(tf.float64, [2])
        result = Builder(tf).build(program, scope_of(x, y))
        zero = tf.UnconnectedGradients.ZERO
        first = tf.gradients(result, inputs, unconnected_gradients=zero)
        weighed = [tf.sin(tf.convert_to_tensor(g)) for g in first]
        second = tf.gradients(weighed, inputs, unconnected_gradients=zero)
        fetches = [tf.convert_to_tensor(t) for t in (result, *first, *second)]
        return sess.run(fetches, {x: X, y: Y})


def theirs(program: Any) -> list[np.ndarray]:
    tf = reference
    with context.eager_mode():
        inputs = x, y = tf.constant(X), tf.constant(Y)
        zero = tf.UnconnectedGradients.ZERO
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                result = Builder(tf).build(program, scope_of(x, y))
            first = inner.gradient(result, inputs, unconnected_gradients=zero)
            weighed = [tf.sin(tf.convert_to_tensor(g)) for g in first]
        second = outer.gradient(weighed, inputs, unconnected_gradients=zero)
        return [tf.convert_to_tensor(t).numpy() for t in (result, *first, *second)]


def check(program: Any) -> None:
    for mine, expected in zip(ours(program), theirs(program), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("mode", "depth", "examples"),
    [
        ("event-driven", 3, 50),
        ("event-driven", 4, 50),
        ("structured", 3, 100),
        ("structured", 4, 50),
        ("structured", 5, 20),
        ("compiled", 3, 30),
    ],
)
def test_values_and_derivatives(mode, depth, examples):
    options = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    with forced(mode):
        seed(depth)(options(given(programs(depth))(check)))()
