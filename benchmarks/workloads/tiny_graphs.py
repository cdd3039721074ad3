"""Many small graphs, no two alike, each built and run once: nothing can be reused.

This is what interactive work and test suites do. A system that compiles whatever it meets is
slow here.
"""

from __future__ import annotations

import random
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

GRAPHS_A_ROUND = 1000


def describe(tf: Any, number: int) -> tuple[Any, dict[Any, Any], bool]:
    """Build graph `number`: what to fetch, what to feed, whether there are variables.

    The number decides the shape, a different one for each of a thousand consecutive numbers, and
    the seed of the choice of ops.
    """
    choice = random.Random(number)
    rows, columns = 1 + number % 32, 1 + number // 32 % 32
    array = numpy.linspace(-1.0, 1.0, rows * columns, dtype=numpy.float32)
    array = array.reshape(rows, columns)
    feeds: dict[Any, Any] = {}
    has_variables = False
    source = choice.randrange(3)
    if source == 0:
        value = tf.constant(array)
    elif source == 1:
        value = tf.placeholder(tf.float32, [None, columns])
        feeds[value] = array
    else:
        value = tf.Variable(array) * 1.0
        has_variables = True
    for _ in range(choice.randint(3, 8)):
        value = _grow(tf, value, choice)
    return tf.reduce_sum(value), feeds, has_variables


def _grow(tf: Any, value: Any, choice: random.Random) -> Any:
    """Add one or a few ops to a rank-2 value; the number of columns stays known."""
    columns = int(value.shape[1])
    match choice.randrange(12):
        case 0:
            return value + choice.random()
        case 1:
            return choice.uniform(-2.0, 2.0) * value
        case 2:
            weights = numpy.full((columns, choice.randint(1, 9)), 0.25, numpy.float32)
            return tf.matmul(value, tf.constant(weights))
        case 3:
            return tf.nn.relu(value)
        case 4:
            return tf.tanh(value)
        case 5:
            return tf.exp(-tf.abs(value))
        case 6:
            return value - tf.reduce_mean(value, axis=1, keepdims=True)
        case 7:
            return tf.concat([value, value * 0.5], axis=1)
        case 8:
            return tf.reshape(value, [-1, columns])
        case 9:
            return tf.maximum(value, choice.uniform(-0.5, 0.5))
        case 10:
            return tf.nn.softmax(value)
        case _:
            # Not zero: centred values are zero up to rounding, which differs between systems.
            above = value > choice.uniform(0.01, 0.5)
            return tf.cast(tf.cast(above, tf.int32), tf.float32) + value


def tiny_graphs(frontend: str) -> Workload:
    """Build and run a thousand graphs in every iteration, and new ones in the next."""
    tf = load_frontend(frontend)
    results: list[float] = []
    following = 0

    def run(iterations: int) -> None:
        nonlocal following
        for number in range(following, following + iterations * GRAPHS_A_ROUND):
            with tf.Graph().as_default():
                fetch, feeds, has_variables = describe(tf, number)
                with tf.Session() as session:
                    if has_variables:
                        session.run(tf.global_variables_initializer())
                    results.append(float(session.run(fetch, feeds)))
        following += iterations * GRAPHS_A_ROUND

    return Workload(run, facts=lambda: {"results": results[:GRAPHS_A_ROUND]})


def compilations(frontend: str) -> Workload:
    """The same, with XLA's compilations counted through JAX's monitoring events."""
    import jax

    counted: list[str] = []

    def count(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            counted.append(event)

    jax.monitoring.register_event_duration_secs_listener(count)
    run = tiny_graphs(frontend).run
    jax.jit(lambda x: x + 1)(1.0)
    if not counted:
        raise RuntimeError(f"JAX {jax.__version__} reports no compilations: cannot count them")
    counted.clear()
    return Workload(run, facts=lambda: {"compilations": len(counted)})
