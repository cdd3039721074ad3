"""Graph construction: how fast a program describes a graph, before anything runs."""

from __future__ import annotations

from typing import Any

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads import mlp


def forward_graph(tf: Any, towers: int = 20) -> None:
    """Describe the kind of graph that people write: small classifiers, side by side.

    Placeholders, variables, products, activations, reductions, reshapes, casts, and Python
    numbers that become constants on the way.
    """
    losses = []
    for tower in range(towers):
        with tf.name_scope(f"tower_{tower}"):
            images = tf.placeholder(tf.float32, [None, 64])
            labels = tf.placeholder(tf.float32, [None, 10])
            hidden_weights = tf.Variable(tf.truncated_normal([64, 32], stddev=0.1))
            hidden_bias = tf.Variable(tf.zeros([32]))
            output_weights = tf.Variable(tf.truncated_normal([32, 10], stddev=0.1))
            output_bias = tf.Variable(tf.zeros([10]))
            hidden = tf.nn.relu(tf.matmul(images, hidden_weights) + hidden_bias)
            scaled = 0.5 * hidden + 1.0
            logits = (tf.matmul(scaled, output_weights) - output_bias) / 3.0
            probabilities = tf.nn.softmax(logits)
            entropy = -tf.reduce_sum(labels * tf.log(probabilities + 1e-6), axis=1)
            penalty = 1e-4 * tf.reduce_sum(tf.square(hidden_weights))
            losses.append(tf.reduce_mean(entropy) + penalty)
            right = tf.equal(tf.argmax(probabilities, 1), tf.argmax(labels, 1))
            tf.reduce_mean(tf.cast(right, tf.float32))
            tf.reduce_max(tf.reshape(hidden, [-1]))
    tf.add_n(losses)


def identity_chain(tf: Any, length: int = 1000) -> None:
    """Describe a chain of the cheapest op there is."""
    value = tf.constant(1.0)
    for _ in range(length):
        value = tf.identity(value)


def training_graph(tf: Any) -> None:
    """Describe the MLP with its gradients and Adam's update, as a training script does."""
    mlp.describe(tf)


PROGRAMS = {
    "forward_graph": forward_graph,
    "identity_chain": identity_chain,
    "training_graph": training_graph,
}


def construction(frontend: str, program: str) -> Workload:
    """Describe the program's graph anew in every iteration."""
    tf = load_frontend(frontend)
    describe = PROGRAMS[program]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            with tf.Graph().as_default():
                describe(tf)

    with tf.Graph().as_default() as graph:
        describe(tf)
    operations = len(graph.get_operations())
    return Workload(run, facts=lambda: {"operations": operations})
