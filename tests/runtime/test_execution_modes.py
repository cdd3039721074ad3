"""Generated programs give the same values and gradients in every way in which a step can run."""

import numpy as np
from hypothesis import HealthCheck, given, settings

import runnel as tf
from tests.conformance.generated_control_flow import Builder, programs
from tests.execution_modes import MODES, forced

X, Y = np.array([0.7, -0.4]), np.array([-0.2, 0.9])


def outcomes(program):
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float64, [2]), tf.placeholder(tf.float64, [2])
        result = Builder(tf).build(program, {"x": x, "y": y, "s": x * y, "i": y + 0.1})
        gradients = [g for g in tf.gradients(result, [x, y]) if g is not None]
        fetches = [result, *map(tf.convert_to_tensor, gradients)]
        found = {}
        for mode in MODES:
            with forced(mode), tf.Session() as sess:
                found[mode] = sess.run(fetches, {x: X, y: Y})
        # A step that is traced has an entry for each node: all are run by pending counts.
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        with forced("event-driven"), tf.Session() as sess:
            metadata = tf.RunMetadata()
            found["counted"] = sess.run(fetches, {x: X, y: Y}, traced, metadata)
        return found


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(programs(3))
def test_generated_programs_agree_in_every_mode(program):
    expected, *others = outcomes(program).values()
    for found in others:
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
