"""An embedding of many rows, few of which a step touches, with TensorFlow's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads.transformer import repeated

RATE = 0.1
INITIAL_ACCUMULATOR = 0.1


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the table is, and how many of its rows a step touches."""

    rows: int = 2_000_000
    units: int = 64
    touched: int = 131_072

    def table(self) -> numpy.ndarray:
        """The first values of the table."""
        generator = numpy.random.default_rng(0)
        return generator.standard_normal((self.rows, self.units), dtype=numpy.float32)

    def data(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Which rows are looked up, some of them often, and a weight for each."""
        generator = numpy.random.default_rng(1)
        rows = generator.integers(0, self.rows, self.touched, numpy.int32)
        rows[: self.touched // 8] = generator.integers(0, 100, self.touched // 8)
        return rows, generator.standard_normal((self.touched, 1), dtype=numpy.float32)


def training_step(frontend: str, optimizer: str, **sizes: int) -> Workload:
    """Steps over rows that lie where the table lies."""
    from benchmarks.models.on_graphs import Loader

    tf = load_frontend(frontend)
    described = Sizes(**sizes)
    with tf.Graph().as_default():
        loader = Loader(tf)
        rows, weights = (
            loader.variable(array, name, trainable=False)
            for array, name in zip(described.data(), ("rows", "weights"), strict=True)
        )
        table = loader.variable(described.table(), "table")
        looked_up = tf.nn.embedding_lookup(table, rows)
        loss = tf.reduce_sum(tf.square(looked_up) * weights) / described.touched
        made: Any = tf.train.GradientDescentOptimizer(RATE)
        if optimizer == "adagrad":
            made = tf.train.AdagradOptimizer(RATE, INITIAL_ACCUMULATOR)
        train = made.minimize(loss)
        others = [v for v in tf.global_variables() if v not in loader.variables]
        session = tf.Session()
        loader.load(session)
        session.run([variable.initializer for variable in others])
    call = session.make_callable(train)
    return repeated(call, lambda _: float(session.run(loss)), fetches=False)
