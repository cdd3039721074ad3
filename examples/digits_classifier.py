"""Train a small neural network on handwritten digits and report its held-out accuracy.

    python examples/digits_classifier.py
    python examples/digits_classifier.py --data-dir MNIST_data/ --steps 5000

The data are the UCI digits (8 x 8 pixels) that ship with runnel; IDX files of MNIST or
Fashion-MNIST where `--data-dir` names their folder, or where Debian's `dataset-fashion-mnist`
is installed (`--bundled` keeps to the digits).
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import runnel as tf
from runnel.datasets import DataSets, digits, mnist

HIDDEN_UNITS = (128, 64)
NUM_CLASSES = 10
REPORTS = 10
# What a network of this size should reach on the digits; less means that something is broken.
REQUIRED_DIGITS_ACCURACY = 0.95


class Model(NamedTuple):
    """The ends of the graph that a training loop takes hold of."""

    images: Any
    labels: Any
    loss: Any
    accuracy: Any
    train_op: Any


def dense_layer(inputs: Any, units: int, name: str) -> Any:
    """Add a fully connected layer: `inputs` times a matrix of weights, plus biases."""
    fan_in = int(inputs.shape[1])
    with tf.name_scope(name):
        # He et al. (2015): keeps the variance through layers of rectified units.
        initial = tf.truncated_normal([fan_in, units], stddev=(2.0 / fan_in) ** 0.5)
        weights = tf.Variable(initial, name="weights")
        biases = tf.Variable(tf.zeros([units]), name="biases")
        return tf.matmul(inputs, weights) + biases


def build_model(num_features: int, learning_rate: float) -> Model:
    """Describe the network, its loss and one training step; nothing is computed yet."""
    images = tf.placeholder(tf.float32, [None, num_features], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    hidden = images
    for number, units in enumerate(HIDDEN_UNITS, start=1):
        hidden = tf.nn.relu(dense_layer(hidden, units, f"hidden{number}"))
    logits = dense_layer(hidden, NUM_CLASSES, "logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    correct = tf.equal(tf.argmax(logits, 1), labels)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32), name="accuracy")
    train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
    return Model(images, labels, loss, accuracy, train_op)


def report_progress(steps: int) -> Iterator[tuple[int, Progress | None]]:
    """Yield the steps' numbers with the bar that shows them, or with None where no terminal is."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from ((step, None) for step in range(1, steps + 1))
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps, status="")
        for step in range(1, steps + 1):
            yield step, progress
            progress.advance(task)


def train(session: Any, model: Model, data: DataSets, steps: int, batch_size: int) -> None:
    """Run the training steps, saying now and then how it goes."""
    interval = max(1, steps // REPORTS)
    for step, progress in report_progress(steps):
        images, labels = data.train.next_batch(batch_size)
        feed = {model.images: images, model.labels: labels}
        if step % interval and step != steps:
            session.run(model.train_op, feed)
            continue
        loss, _ = session.run([model.loss, model.train_op], feed)
        held_out = evaluate(session, model, data.validation)
        status = f"loss {loss:.4f}, validation accuracy {held_out:.4f}"
        if progress is None:
            print(f"step {step}/{steps}: {status}", flush=True)
        else:
            progress.update(progress.task_ids[0], status=status)


def evaluate(session: Any, model: Model, data: Any) -> float:
    """Return the accuracy on a whole data set."""
    return float(
        session.run(model.accuracy, {model.images: data.images, model.labels: data.labels})
    )


def read_data(data_dir: Path | None, bundled: bool, seed: int) -> tuple[str, DataSets, float]:
    """Return the data set's name, its parts, and the accuracy required of the network."""
    folder = data_dir or (None if bundled else mnist.find_installed())
    if folder is None:
        data = digits.read_data_sets(one_hot=False, seed=seed)
        return "UCI handwritten digits", data, REQUIRED_DIGITS_ACCURACY
    # Nobody knows what somebody else's files allow.
    return str(folder), mnist.read_data_sets(folder, one_hot=False, seed=seed), 0.0


@click.command()
@click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--learning-rate", type=float, default=0.003, show_default=True)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the IDX files of MNIST or Fashion-MNIST.",
)
@click.option("--bundled", is_flag=True, help="Use the bundled digits, whatever is installed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
def main(
    steps: int,
    batch_size: int,
    learning_rate: float,
    data_dir: Path | None,
    bundled: bool,
    seed: int,
) -> None:
    """Train a small neural network on handwritten digits and report its held-out accuracy."""
    try:
        name, data, required = read_data(data_dir, bundled, seed)
    except (FileNotFoundError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    print(
        f"{name}: {data.train.num_examples} training, {data.validation.num_examples} validation "
        f"and {data.test.num_examples} test examples"
    )
    tf.set_random_seed(seed)
    model = build_model(data.train.images.shape[1], learning_rate)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        train(session, model, data, steps, batch_size)
        seconds = time.perf_counter() - start
        accuracy = evaluate(session, model, data.test)
    print(f"{steps} steps in {seconds:.1f} s")
    print(f"held-out accuracy: {accuracy:.4f}")
    if accuracy < required:
        print(
            f"error: the accuracy is below {required}, which {steps} steps should reach on this "
            "data; try more --steps or another --learning-rate, and if the defaults fail too, "
            "something in runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
