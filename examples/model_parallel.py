"""Model parallelism: the layers of a recurrent network on different devices, or tasks of a cluster.

    python examples/model_parallel.py
    XLA_FLAGS=--xla_force_host_platform_device_count=2 python examples/model_parallel.py
    runnel up --workers 2 examples/model_parallel.py

Each layer is a `tf.nn.dynamic_rnn` on a device of its own, with its variables: the loops and their
gradients run there, and only a layer's outputs, and on the way back their gradients, are sent. The
network reads a handwritten digit line by line and says which it is. Where `TF_CONFIG` names a
cluster, the first worker runs the steps, and each worker holds a layer.
"""

import json
import os
import time
from typing import Any

import click

import runnel as tf
from runnel.datasets import digits

UNITS = 48
NUM_CLASSES = 10
LINES = 8


def build(devices: list[str], learning_rate: float) -> Any:
    """The graph: a recurrent layer on each of ``devices``, the classifier on the last."""
    images = tf.placeholder(tf.float32, [None, LINES * LINES], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    outputs = tf.reshape(images, [-1, LINES, LINES])
    for number, device in enumerate(devices):
        with tf.device(device), tf.variable_scope(f"layer{number}"):
            cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
            outputs, _ = tf.nn.dynamic_rnn(cell, outputs, dtype=tf.float32)
    with tf.device(devices[-1]):
        weights = tf.get_variable("weights", [UNITS, NUM_CLASSES])
        logits = tf.matmul(outputs[:, -1], weights)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        correct = tf.equal(tf.argmax(logits, 1), labels)
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    # Each operation's gradient is where the operation is.
    optimizer = tf.train.AdamOptimizer(learning_rate)
    gradients = tf.gradients(loss, tf.trainable_variables(), colocate_gradients_with_ops=True)
    train_op = optimizer.apply_gradients(
        list(zip(gradients, tf.trainable_variables(), strict=True))
    )
    return images, labels, loss, accuracy, train_op


def end_queue(task: str) -> Any:
    """A queue on ``task`` that gets an element when the training is over."""
    with tf.device(task):
        return tf.FIFOQueue(1, tf.int32, shapes=[()], shared_name="end", name="end")


def local_devices(layers: int) -> tuple[list[str], Any]:
    """A device of this process for each layer, and the configuration of a session with these."""
    gpus = tf.config.experimental.list_logical_devices("GPU")
    kind = "GPU" if len(gpus) >= layers else "CPU"
    config = tf.ConfigProto(device_count={"CPU": layers if kind == "CPU" else 1})
    return [f"/device:{kind}:{number}" for number in range(layers)], config


@click.command()
@click.option("--layers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=400, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--page", type=click.Path(), help="Write where everything runs, and why, to a page.")
def main(layers: int, steps: int, batch_size: int, seed: int, page: str | None) -> None:
    """Train a recurrent network on handwritten digits with its layers on different devices."""
    job = json.loads(os.environ.get("TF_CONFIG") or "{}")
    others: list[str] = []
    if "cluster" in job:
        own = job["task"]
        server = tf.train.Server(job["cluster"], own["type"], int(own["index"]))
        tasks = [f"/job:worker/task:{number}" for number in range(len(job["cluster"]["worker"]))]
        here = f"/job:{own['type']}/task:{own['index']}"
        if here != tasks[0]:  # it runs what the first one has it run, until that is done
            with tf.Session(server.target, config=tf.ConfigProto(device_filters=[here])) as session:
                session.run(end_queue(here).dequeue())
            return
        devices, others, target = (
            [tasks[n % len(tasks)] for n in range(layers)],
            tasks[1:],
            server.target,
        )
        config = None
    else:
        devices, config = local_devices(layers)
        target = ""
    data = digits.read_data_sets(one_hot=False, seed=seed)
    tf.set_random_seed(seed)
    images, labels, loss, accuracy, train_op = build(devices, learning_rate=0.01)
    end = tf.group(*(end_queue(task).enqueue(0) for task in others))
    with tf.Session(target, config=config) as session:
        session.run(tf.global_variables_initializer())
        if page:
            explanation = tf.explain_placement(session, [loss, train_op], [images, labels])
            explanation.save(page)
        start = time.perf_counter()
        for step in range(1, steps + 1):
            batch_images, batch_labels = data.train.next_batch(batch_size)
            feed = {images: batch_images, labels: batch_labels}
            value, _ = session.run([loss, train_op], feed)
            if step % max(1, steps // 5) == 0:
                print(f"step {step}/{steps}: loss {value:.4f}", flush=True)
        seconds = time.perf_counter() - start
        test = {images: data.test.images, labels: data.test.labels}
        print(f"{steps} steps with layers on {', '.join(devices)} in {seconds:.1f} s")
        print(f"held-out accuracy: {session.run(accuracy, test):.4f}")
        session.run(end)


if __name__ == "__main__":
    main()
