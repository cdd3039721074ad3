"""A transformer encoder with TensorFlow's names: token embeddings, a label for every token, Adam.

The sizes, the first values and the data are here too, for the versions of every framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

RATE, BETA_1, BETA_2, EPSILON = 1e-4, 0.9, 0.999, 1e-8
CHECKED_STEPS = 3
NORM_EPSILON = 1e-5

Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the encoder and its batch are."""

    layers: int = 6
    units: int = 512
    heads: int = 8
    inner: int = 2048
    vocabulary: int = 8192
    batch: int = 32
    length: int = 256

    @property
    def head_units(self) -> int:
        """The units of a head."""
        return self.units // self.heads

    def parameters(self) -> dict[str, numpy.ndarray]:
        """The first values of all parameters."""
        generator = numpy.random.default_rng(0)

        def normal(rows: int, columns: int, scale: float | None = None) -> numpy.ndarray:
            values = generator.standard_normal((rows, columns), dtype=numpy.float32)
            return values * numpy.float32(rows**-0.5 if scale is None else scale)

        units, inner = self.units, self.inner
        found = {
            "tokens": normal(self.vocabulary, units, 0.02),
            "positions": normal(self.length, units, 0.02),
        }

        def dense(name: str, rows: int, columns: int) -> None:
            found[f"{name}/weights"] = normal(rows, columns)
            found[f"{name}/bias"] = numpy.zeros(columns, numpy.float32)

        def norm(name: str) -> None:
            found[f"{name}/scale"] = numpy.ones(units, numpy.float32)
            found[f"{name}/offset"] = numpy.zeros(units, numpy.float32)

        for layer in range(self.layers):
            norm(f"{layer}/before_attention")
            for part in ("query", "key", "value", "output"):
                dense(f"{layer}/{part}", units, units)
            norm(f"{layer}/before_inner")
            dense(f"{layer}/inner", units, inner)
            dense(f"{layer}/outer", inner, units)
        norm("last")
        dense("logits", units, self.vocabulary)
        return found

    def data(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Tokens and the label of each."""
        generator = numpy.random.default_rng(1)
        shape = (self.batch, self.length)
        tokens = generator.integers(0, self.vocabulary, shape, numpy.int32)
        return tokens, (tokens * 7 + 3) % self.vocabulary


def encoder_loss(tf: Any, sizes: Sizes, parameters: Parameters, tokens: Any, labels: Any) -> Any:
    """The mean cross-entropy of the labels."""
    rows, length = sizes.batch * sizes.length, sizes.length

    def dense(value: Any, name: str) -> Any:
        return tf.matmul(value, parameters[f"{name}/weights"]) + parameters[f"{name}/bias"]

    def norm(value: Any, name: str) -> Any:
        mean, variance = tf.nn.moments(value, [1], keep_dims=True)
        scaled = (value - mean) * tf.rsqrt(variance + NORM_EPSILON)
        return scaled * parameters[f"{name}/scale"] + parameters[f"{name}/offset"]

    def heads(value: Any) -> Any:
        apart = tf.reshape(value, [sizes.batch, length, sizes.heads, sizes.head_units])
        return tf.transpose(apart, [0, 2, 1, 3])

    value = tf.nn.embedding_lookup(parameters["tokens"], tokens) + parameters["positions"]
    value = tf.reshape(value, [rows, sizes.units])
    for layer in range(sizes.layers):
        inputs = norm(value, f"{layer}/before_attention")
        query, key, seen = (
            heads(dense(inputs, f"{layer}/{part}")) for part in ("query", "key", "value")
        )
        scores = tf.matmul(query, key, transpose_b=True) * sizes.head_units**-0.5
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), seen), [0, 2, 1, 3])
        value += dense(tf.reshape(mixed, [rows, sizes.units]), f"{layer}/output")
        inner = tf.nn.relu(dense(norm(value, f"{layer}/before_inner"), f"{layer}/inner"))
        value += dense(inner, f"{layer}/outer")
    logits = dense(norm(value, "last"), "logits")
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [rows]), logits=logits
    )
    return tf.reduce_mean(entropy)


def training_step(frontend: str, precision: str, fetches: bool, **sizes: int) -> Workload:
    """Training steps on one batch that lies where the parameters lie.

    The loss is brought back after every step if it ``fetches``, and otherwise after the last.
    """
    from benchmarks.models.on_graphs import Loader

    tf = load_frontend(frontend)
    encoder = Sizes(**sizes)
    with tf.Graph().as_default():
        loader = Loader(tf)
        tokens, labels = (
            loader.variable(array, name, trainable=False)
            for array, name in zip(encoder.data(), ("data_tokens", "data_labels"), strict=True)
        )
        parameters = {
            name: loader.variable(value, f"p_{name.replace('/', '_')}")
            for name, value in encoder.parameters().items()
        }
        loss = encoder_loss(tf, encoder, parameters, tokens, labels)
        optimizer = tf.train.AdamOptimizer(RATE, BETA_1, BETA_2, EPSILON)
        if precision == "bf16":
            optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
                optimizer, dtype=tf.bfloat16
            )
        train = optimizer.minimize(loss)
        kept = tf.Variable(tf.zeros([]), trainable=False, name="kept_loss")
        step: Any = [train, loss] if fetches else tf.group(train, kept.assign(loss))
        others = [v for v in tf.global_variables() if v not in loader.variables]
        session = tf.Session()
        loader.load(session)
        session.run([variable.initializer for variable in others])
    call = session.make_callable(step)
    if fetches:
        return repeated(call, lambda result: float(result[1]), fetches)
    return repeated(call, lambda _: float(session.run(kept)), fetches)


def repeated(step: Callable[[], Any], loss_of: Callable[[Any], float], fetches: bool) -> Workload:
    """``step`` as a workload: its loss is looked at after each, or after the last."""
    losses = [loss_of(step()) for _ in range(CHECKED_STEPS)]

    def run(iterations: int) -> None:
        result = None
        for _ in range(iterations):
            result = step()
            if fetches:
                loss_of(result)
        loss_of(result)

    return Workload(run, facts=lambda: {"losses": losses})
