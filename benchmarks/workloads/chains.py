"""Chains of ops: the executor's cost for one op, and how a graph's size is felt."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy

from benchmarks.frontends import load_frontend, unoptimized_config
from benchmarks.workload import Workload


def executed_chain(
    frontend: str, operation: str, length: int, shape: Sequence[int] = ()
) -> Workload:
    """Run a chain of `length` ops on a fed scalar or array, every op as it stands in the graph.

    An `add` adds what the chain began with, which is the only thing that changes the value.
    """
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        start = tf.placeholder(tf.float32, shape)
        value = start
        apply = getattr(tf, operation)
        for _ in range(length):
            value = apply(value, start) if operation == "add" else apply(value)
        session = tf.Session(config=unoptimized_config(tf))
    step = session.make_callable(value, feed_list=[start])
    fed = numpy.full(shape, 3.0, numpy.float32)
    expected = 3.0 * (length + 1) if operation == "add" else 3.0

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step(fed)

    return Workload(
        run,
        facts=lambda: {
            "right": bool(numpy.all(step(fed) == expected)),
            "jax_imported": "jax" in sys.modules,
        },
    )


def growing_chain(frontend: str, length: int) -> Workload:
    """Describe a chain of `length` arithmetic ops and run it once, in a new graph and session."""
    tf = load_frontend(frontend)
    spent: list[tuple[float, float]] = []
    right: list[bool] = []

    def run(iterations: int) -> None:
        for _ in range(iterations):
            started = time.perf_counter()
            with tf.Graph().as_default():
                start, end = _describe_chain(tf, length)
            described = time.perf_counter()
            with tf.Session(graph=start.graph) as session:
                result = session.run(end, {start: 1.0})
            spent.append((described - started, time.perf_counter() - described))
            right.append(float(result) == _expected(length))

    return Workload(
        run,
        facts=lambda: {
            "describe_seconds": [describe for describe, _ in spent],
            "run_seconds": [execute for _, execute in spent],
            "right": all(right),
        },
    )


def _describe_chain(tf: Any, length: int) -> tuple[Any, Any]:
    start = tf.placeholder(tf.float32, [])
    one = tf.constant(1.0)
    value = start
    for index in range(length):
        kind = index % 3
        if kind == 0:
            value = tf.negative(value)
        elif kind == 1:
            value = tf.add(value, one)
        else:
            value = tf.identity(value)
    return start, value


def _expected(length: int) -> float:
    value = 1.0
    for index in range(length):
        kind = index % 3
        if kind == 0:
            value = -value
        elif kind == 1:
            value += 1.0
    return value
