"""Data parallelism in one process: a tower on each device, gradients averaged on the CPU.

    python examples/data_parallel.py --towers 2
    XLA_FLAGS=--xla_force_host_platform_device_count=2 python examples/data_parallel.py

Each tower computes the loss and the gradients of its part of the batch with the same variables,
which live on the CPU. Their average makes one update, as if the batch had been whole. Without
accelerators the towers are on several CPU devices of this process.
"""

import time
from typing import Any

import click

import runnel as tf
from runnel.datasets import digits

HIDDEN_UNITS = 128
NUM_CLASSES = 10


def tower_loss(images: Any, labels: Any) -> Any:
    """The loss of one tower; towers after the first share its variables."""
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        hidden = images
        for layer, units in enumerate((HIDDEN_UNITS, NUM_CLASSES)):
            fan_in = int(hidden.shape[1])
            # The scopes of the towers name devices; variables are shared, so they have their own.
            with tf.device("/cpu:0"):
                weights = tf.get_variable(f"weights{layer}", [fan_in, units])
                biases = tf.get_variable(
                    f"biases{layer}", [units], initializer=tf.zeros_initializer()
                )
            hidden = tf.matmul(hidden, weights) + biases
            if layer == 0:
                hidden = tf.nn.relu(hidden)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
    return tf.reduce_mean(losses), hidden


def average_gradients(towers: list[list[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    """For each variable the mean of what the towers found."""
    averaged = []
    for pairs in zip(*towers, strict=True):
        variable = pairs[0][1]
        gradient = tf.add_n([gradient for gradient, _ in pairs]) / float(len(pairs))
        averaged.append((gradient, variable))
    return averaged


def build(devices: list[str], num_features: int, learning_rate: float) -> Any:
    """The graph: inputs split over ``devices``, one loss, one training step."""
    images = tf.placeholder(tf.float32, [None, num_features], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    optimizer = tf.train.AdamOptimizer(learning_rate)
    size = tf.shape(images)[0] // len(devices)
    losses, gradients, logits = [], [], []
    for number, device in enumerate(devices):
        with tf.device("/cpu:0"):
            part = slice(number * size, (number + 1) * size)
            tower_images, tower_labels = images[part], labels[part]
        with tf.device(device), tf.name_scope(f"tower{number}"):
            loss, scores = tower_loss(tower_images, tower_labels)
            losses.append(loss)
            logits.append(scores)
            gradients.append(optimizer.compute_gradients(loss))
    with tf.device("/cpu:0"):
        train_op = optimizer.apply_gradients(average_gradients(gradients))
        loss = tf.add_n(losses) / float(len(losses))
        predicted = tf.argmax(tf.concat(logits, 0), 1)
        kept = labels[: size * len(devices)]
        accuracy = tf.reduce_mean(tf.cast(tf.equal(predicted, kept), tf.float32))
    return images, labels, loss, accuracy, train_op


@click.command()
@click.option("--towers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=600, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=128, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def main(towers: int, steps: int, batch_size: int, seed: int) -> None:
    """Train a network on handwritten digits with a tower on each of several devices."""
    gpus = tf.config.experimental.list_logical_devices("GPU")
    kind = "GPU" if len(gpus) >= towers else "CPU"
    devices = [f"/device:{kind}:{number}" for number in range(towers)]
    data = digits.read_data_sets(one_hot=False, seed=seed)
    tf.set_random_seed(seed)
    images, labels, loss, accuracy, train_op = build(
        devices, data.train.images.shape[1], learning_rate=0.003
    )
    config = tf.ConfigProto(device_count={"CPU": towers if kind == "CPU" else 1})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        for step in range(1, steps + 1):
            batch_images, batch_labels = data.train.next_batch(batch_size)
            feed = {images: batch_images, labels: batch_labels}
            value, _ = session.run([loss, train_op], feed)
            if step % max(1, steps // 5) == 0:
                print(f"step {step}/{steps}: loss {value:.4f}", flush=True)
        seconds = time.perf_counter() - start
        test = {images: data.test.images, labels: data.test.labels}
        print(f"{steps} steps with towers on {', '.join(devices)} in {seconds:.1f} s")
        print(f"held-out accuracy: {session.run(accuracy, test):.4f}")


if __name__ == "__main__":
    main()
