"""Loops: what an iteration that does almost nothing costs, and what a gradient keeps of each."""

from __future__ import annotations

import resource
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.resident import resident_bytes
from benchmarks.workload import Workload

ITERATIONS = 10_000
SIZE = 1_000
"""Numbers in the vector that the loop of `gradient_memory` carries on."""


def config_for(tf: Any, mode: str) -> Any:
    """A `ConfigProto` that makes runnel run loops in one of its ways; "default" leaves it alone.

    "structured" interprets whole loops, "event-driven" every node as its inputs arrive, both
    without XLA; "compiled" compiles from the first step on.
    """
    config = tf.ConfigProto()
    if mode != "default":
        level = 1 if mode == "compiled" else -1
        config.graph_options.optimizer_options.global_jit_level = level
    if mode == "event-driven":
        config.experimental.executor_type = "DATAFLOW"
    return config


def counting(frontend: str, mode: str = "default") -> Workload:
    """Count to 10,000 in a loop. The limit is fed: nobody can know the result beforehand."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        limit = tf.placeholder(tf.int32, [])
        last = tf.while_loop(lambda i: i < limit, lambda i: i + 1, [tf.constant(0)])
        session = tf.Session(config=config_for(tf, mode))
    step = session.make_callable(last, [limit])
    fed = numpy.int32(ITERATIONS)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step(fed)

    def right() -> bool:
        return [int(step(numpy.int32(n))) for n in (0, 7, ITERATIONS)] == [0, 7, ITERATIONS]

    return Workload(run, facts=lambda: {"right": right()})


def python_body(frontend: str) -> Workload:
    """Run a loop whose body has products before and after a Python function."""
    tf = load_frontend(frontend)
    random = numpy.random.RandomState(0)
    start = random.randn(64, 512).astype(numpy.float32)
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [64, 512])
        weights = tf.Variable((random.randn(512, 512) * 0.05).astype(numpy.float32))

        def layers(value: Any) -> Any:
            for _ in range(4):
                value = tf.tanh(tf.matmul(value, weights) + 0.1)
            return value

        def body(i: Any, value: Any) -> Any:
            value = tf.py_func(
                lambda array: array * numpy.float32(0.5), [layers(value)], tf.float32
            )
            value.set_shape([64, 512])
            return i + 1, layers(value)

        last = tf.while_loop(lambda i, _: i < 20, body, (tf.constant(0), fed))[1]
        total = tf.reduce_sum(last)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    step = session.make_callable(total, [fed])

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step(start)

    return Workload(run, facts=lambda: {"sums": [float(step(start))]})


def gradient_memory(
    frontend: str, iterations_run: int, maximum: int, ends: str, mode: str = "default"
) -> Workload:
    """Differentiate a loop that ends after some iterations, long before the maximum.

    "count" ends it when a counter reaches a fed integer, from which the number of iterations could
    be known before it starts; "data" when a number that is computed on the way reaches a fed one.
    The fact is the growth of the process's peak memory by steps of that many iterations.
    """
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        start = tf.placeholder(tf.float32, [SIZE])
        kind = tf.int32 if ends == "count" else tf.float32
        limit = tf.placeholder(kind, [])
        factor = tf.Variable(0.5)

        def goes_on(progress: Any, value: Any) -> Any:
            return progress < limit

        def body(progress: Any, value: Any) -> Any:
            return progress + tf.cast(1, kind), tf.sin(value * factor) + start

        _, last = tf.while_loop(
            goes_on, body, (tf.cast(0, kind), start), maximum_iterations=maximum
        )
        loss = tf.reduce_mean(last)
        [gradient] = tf.gradients(loss, [factor])
        session = tf.Session(config=config_for(tf, mode))
        session.run(tf.global_variables_initializer())
    values = numpy.linspace(0.1, 1.0, SIZE, dtype=numpy.float32)
    results: list[float] = []

    def step(count: int) -> float:
        return float(session.run(gradient, {start: values, limit: count}))

    # What is made once is not counted: the plan, the libraries, the compiled form.
    for _ in range(3):
        step(2)
    before = resident_bytes()

    def run(iterations: int) -> None:
        for _ in range(iterations):
            results.append(step(iterations_run))

    def facts() -> dict[str, Any]:
        expected = _gradient(values, iterations_run)
        return {
            "bytes": peak_bytes() - before,
            "right": all(abs(found - expected) <= 1e-3 * abs(expected) for found in results),
        }

    return Workload(run, facts)


def _gradient(start: numpy.ndarray, count: int, factor: float = 0.5) -> float:
    """The gradient of the loop's result, carried forward beside it in float64."""
    value = start.astype(numpy.float64)
    first, tangent = value, numpy.zeros_like(value)
    for _ in range(count):
        inside = value * factor
        tangent = numpy.cos(inside) * (tangent * factor + value)
        value = numpy.sin(inside) + first
    return float(tangent.mean())


def peak_bytes() -> int:
    """The most memory that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
