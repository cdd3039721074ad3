"""Generated programs of conditionals and loops, with first and second derivatives.

TensorFlow's graphs refuse second derivatives of their loops (or, with its later control flow, take
a second to build one). So the oracle is TensorFlow run eagerly: the same operations, with Python's
control flow under ``tf.cond`` and ``tf.while_loop``, and tapes for the derivatives.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference
from hypothesis import HealthCheck, given, seed, settings
from tensorflow.python.eager import context

import runnel
from tests.conformance.generated_control_flow import Builder, programs
from tests.execution_modes import MODES, forced

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


class EagerBuilder(Builder):
    """Programs of eager operations: a gradient is taken at once, by a tape, and used later."""

    def slope(self, function: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[], Any]]:
        with self.tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        zero = self.tf.UnconnectedGradients.ZERO
        gradient = tape.gradient(value, x, unconnected_gradients=zero)
        return value, lambda: self.tf.convert_to_tensor(gradient)


def theirs(program: Any) -> list[np.ndarray]:
    tf = reference
    with context.eager_mode():
        inputs = x, y = tf.constant(X), tf.constant(Y)
        zero = tf.UnconnectedGradients.ZERO
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                result = EagerBuilder(tf).build(program, scope_of(x, y))
            first = inner.gradient(result, inputs, unconnected_gradients=zero)
            weighed = [tf.sin(tf.convert_to_tensor(g)) for g in first]
        second = outer.gradient(weighed, inputs, unconnected_gradients=zero)
        return [tf.convert_to_tensor(t).numpy() for t in (result, *first, *second)]


def check(program: Any) -> None:
    for mine, expected in zip(ours(program), theirs(program), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)


def check_examples(mode: str, depth: int, examples: int, slopes: bool) -> None:
    options = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    with forced(mode):
        seed(depth)(options(given(programs(depth, slopes))(check)))()


@pytest.mark.parametrize(
    ("mode", "depth", "examples"),
    [
        ("event-driven", 3, 50),
        ("event-driven", 4, 50),
        ("event-driven, compiled", 3, 15),
        ("structured", 3, 100),
        ("structured", 4, 50),
        ("structured", 5, 20),
        ("compiled", 3, 30),
    ],
)
def test_values_and_derivatives(mode, depth, examples):
    check_examples(mode, depth, examples, slopes=False)


@pytest.mark.parametrize(
    ("mode", "depth", "examples"),
    [
        ("event-driven", 4, 20),
        ("event-driven, compiled", 3, 6),
        ("structured", 4, 30),
        ("compiled", 3, 12),
    ],
)
def test_gradients_taken_inside(mode, depth, examples):
    """Gradients of gradients that were taken in branches and in loops: third derivatives."""
    check_examples(mode, depth, examples, slopes=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pred", ["x", "y"])
def test_a_gradient_of_a_loop_taken_in_a_branch(mode, pred):
    """What the loop kept is used only where the branch is taken: elsewhere its gradient is zero."""
    loop = ("while", 2, "x", ("mul", ("sin", "s"), "s"))
    with forced(mode):
        check(("let", loop, ("cond", pred, "slope", "x")))
        check(("let", loop, ("add", "t", ("cond", pred, "slope", "x"))))
