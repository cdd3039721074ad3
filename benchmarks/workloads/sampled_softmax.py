"""A language model over many words, with the full softmax and a sampled one."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

WORDS, UNITS, EXAMPLES, LENGTH, SAMPLED = 40_000, 512, 16, 20, 512
RATE = 0.1


def batches(count: int = 4) -> list[numpy.ndarray]:
    """Pieces of text, one word longer than is read at a time."""
    generator = numpy.random.default_rng(0)
    # Zipf's law: word k comes 1/(k + 1) as often as the first.
    chances = 1 / numpy.arange(1, WORDS + 1)
    return [
        generator.choice(WORDS, (EXAMPLES, LENGTH + 1), p=chances / chances.sum())
        for _ in range(count)
    ]


def training_step(frontend: str, sampled: bool, recurrent: bool) -> Workload:
    """One training step; without the recurrent network it is that of the softmax alone."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        text = tf.placeholder(tf.int64, [EXAMPLES, LENGTH + 1])
        uniform = tf.random_uniform_initializer(-0.05, 0.05, seed=1)
        with tf.variable_scope("model", initializer=uniform):
            inputs = _outputs(tf, text) if recurrent else tf.ones([EXAMPLES * LENGTH, UNITS])
            loss = _loss(tf, inputs, tf.reshape(text[:, 1:], [-1, 1]), sampled)
        train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    data = batches()
    losses = [float(session.run([loss, train], {text: data[0]})[0]) for _ in range(2)]
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            session.run([loss, train], {text: batch})

    return Workload(run, facts=lambda: {"losses": losses})


def _outputs(tf: Any, text: Any) -> Any:
    """The outputs of an LSTM over an embedding, a row for each word."""
    embedding = tf.get_variable("embedding", [WORDS, UNITS])
    read = tf.nn.embedding_lookup(embedding, text[:, :-1])
    steps = [tf.squeeze(step, 1) for step in tf.split(read, LENGTH, 1)]
    with tf.variable_scope("lstm"):
        kernel = tf.get_variable("kernel", [2 * UNITS, 4 * UNITS])
        bias = tf.get_variable("bias", [4 * UNITS])
        state = output = tf.zeros([EXAMPLES, UNITS])
        outputs = []
        for step in steps:
            gates = tf.matmul(tf.concat([step, output], 1), kernel) + bias
            i, j, f, o = tf.split(gates, 4, 1)
            state = state * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            output = tf.tanh(state) * tf.sigmoid(o)
            outputs.append(output)
    return tf.reshape(tf.stack(outputs, 1), [-1, UNITS])


def _loss(tf: Any, inputs: Any, labels: Any, sampled: bool) -> Any:
    weights = tf.get_variable("softmax/weights", [WORDS, UNITS])
    biases = tf.get_variable("softmax/biases", [WORDS])
    if sampled:
        losses = tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, SAMPLED, WORDS, seed=1)
    else:
        logits = tf.matmul(inputs, weights, transpose_b=True) + biases
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[:, 0], logits=logits)
    return tf.reduce_mean(losses)
