"""Steps of a small graph without end: does a step leave anything behind?"""

from __future__ import annotations

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload


def steady_steps(frontend: str) -> Workload:
    """Fit a line by gradient descent, a step at a time, fed from NumPy, fetching the loss."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        inputs = tf.placeholder(tf.float32, [None])
        targets = tf.placeholder(tf.float32, [None])
        slope = tf.Variable(0.0)
        offset = tf.Variable(0.0)
        loss = tf.reduce_mean(tf.square(slope * inputs + offset - targets))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    xs = numpy.linspace(-1.0, 1.0, 8, dtype=numpy.float32)
    feeds = {inputs: xs, targets: 2 * xs + 1}

    def run(iterations: int) -> None:
        for _ in range(iterations):
            session.run([train, loss], feeds)

    return Workload(run, facts=lambda: {"line": [float(v) for v in session.run([slope, offset])]})
