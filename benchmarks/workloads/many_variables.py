"""Many small variables with Adam: what a step, and describing it, costs for each variable."""

from __future__ import annotations

from typing import Any

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

ELEMENTS = 8
CHECKED_STEPS = 5


def describe(tf: Any, variables: int) -> tuple[list[Any], Any]:
    """Build the graph: the variables, and the op that trains them all."""
    made = [
        tf.get_variable(f"v{i}", [ELEMENTS], initializer=tf.constant_initializer(i / variables))
        for i in range(variables)
    ]
    loss = tf.add_n([tf.reduce_sum(tf.square(variable - 1.0)) for variable in made])
    return made, tf.train.AdamOptimizer(0.01).minimize(loss)


def training_step(frontend: str, variables: int) -> Workload:
    """One training step, that fetches nothing."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        made, train = describe(tf, variables)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    for _ in range(CHECKED_STEPS):
        session.run(train)
    checked = [float(value[0]) for value in session.run(made[:: variables // 10])]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            session.run(train)

    return Workload(run, facts=lambda: {"values": checked})


def building(frontend: str, variables: int) -> Workload:
    """Describe the graph anew."""
    tf = load_frontend(frontend)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            with tf.Graph().as_default():
                describe(tf, variables)

    return Workload(run)
