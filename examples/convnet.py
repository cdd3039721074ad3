"""Train a convolutional network on images of 28 x 28 pixels and report its held-out accuracy.

    python examples/convnet.py
    python examples/convnet.py --data-dir MNIST_data/ --steps 2000

The network is of LeNet's kind (LeCun et al., 1998): two convolutions, each with a pooling that
halves the image, then two dense layers with dropout between them. The data are the UCI digits that
ship with runnel, drawn at MNIST's size; IDX files of MNIST or Fashion-MNIST where `--data-dir`
names their folder.
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

IMAGE_SIZE = 28
FILTERS = (16, 32)
HIDDEN_UNITS = 128
NUM_CLASSES = 10
REPORTS = 10
# Images that are evaluated together: a whole test set of MNIST's size takes gigabytes.
EVALUATION_BATCH = 500
# What a network of this kind should reach on the digits; less means that something is broken.
REQUIRED_DIGITS_ACCURACY = 0.97


class Model(NamedTuple):
    """The ends of the graph that a training loop takes hold of."""

    images: Any
    labels: Any
    dropout_rate: Any
    loss: Any
    num_correct: Any
    train_op: Any


def weights_and_biases(shape: list[int], fan_in: int) -> tuple[Any, Any]:
    """Create a layer's variables."""
    # He et al. (2015): keeps the variance through layers of rectified units.
    initial = tf.truncated_normal(shape, stddev=(2.0 / fan_in) ** 0.5)
    weights = tf.Variable(initial, name="weights")
    return weights, tf.Variable(tf.zeros([shape[-1]]), name="biases")


def convolutional_layer(images: Any, filters: int, name: str) -> Any:
    """Add a convolution with windows of 5 x 5, and a pooling that halves the image."""
    channels = int(images.shape[3])
    with tf.name_scope(name):
        weights, biases = weights_and_biases([5, 5, channels, filters], 25 * channels)
        convolved = tf.nn.conv2d(images, weights, strides=[1, 1, 1, 1], padding="SAME")
        hidden = tf.nn.relu(tf.nn.bias_add(convolved, biases))
        return tf.nn.max_pool(hidden, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def dense_layer(inputs: Any, units: int, name: str) -> Any:
    """Add a fully connected layer: `inputs` times a matrix of weights, plus biases."""
    fan_in = int(inputs.shape[1])
    with tf.name_scope(name):
        weights, biases = weights_and_biases([fan_in, units], fan_in)
        return tf.matmul(inputs, weights) + biases


def build_model(learning_rate: float) -> Model:
    """Describe the network, its loss and one training step; nothing is computed yet."""
    images = tf.placeholder(tf.float32, [None, IMAGE_SIZE, IMAGE_SIZE, 1], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    dropout_rate = tf.placeholder_with_default(0.0, [], name="dropout_rate")
    maps = images
    for number, filters in enumerate(FILTERS, start=1):
        maps = convolutional_layer(maps, filters, f"convolution{number}")
    features = tf.reshape(maps, [-1, int(maps.shape[1] * maps.shape[2] * maps.shape[3])])
    hidden = tf.nn.relu(dense_layer(features, HIDDEN_UNITS, "hidden"))
    hidden = tf.nn.dropout(hidden, rate=dropout_rate)
    logits = dense_layer(hidden, NUM_CLASSES, "logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    correct = tf.equal(tf.argmax(logits, 1), labels)
    num_correct = tf.reduce_sum(tf.cast(correct, tf.int32), name="num_correct")
    train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss)
    return Model(images, labels, dropout_rate, loss, num_correct, train_op)


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


def train(
    session: Any, model: Model, data: DataSets, steps: int, batch_size: int, dropout: float
) -> None:
    """Run the training steps, saying now and then how it goes."""
    interval = max(1, steps // REPORTS)
    for step, progress in report_progress(steps):
        images, labels = data.train.next_batch(batch_size)
        feed = {model.images: images, model.labels: labels, model.dropout_rate: dropout}
        loss, _ = session.run([model.loss, model.train_op], feed)
        if step % interval and step != steps:
            continue
        held_out = evaluate(session, model, data.validation)
        status = f"loss {loss:.4f}, validation accuracy {held_out:.4f}"
        if progress is None:
            print(f"step {step}/{steps}: {status}", flush=True)
        else:
            progress.update(progress.task_ids[0], status=status)


def evaluate(session: Any, model: Model, data: Any) -> float:
    """Return the accuracy on a whole data set."""
    correct = 0
    for start in range(0, data.num_examples, EVALUATION_BATCH):
        part = slice(start, start + EVALUATION_BATCH)
        feed = {model.images: data.images[part], model.labels: data.labels[part]}
        correct += int(session.run(model.num_correct, feed))
    return correct / data.num_examples


def read_data(data_dir: Path | None, seed: int) -> tuple[str, DataSets, float]:
    """Return the data set's name, its parts, and the accuracy required of the network."""
    how: dict[str, Any] = {"one_hot": False, "reshape": False, "seed": seed}
    if data_dir is None:
        data = digits.read_data_sets(image_size=IMAGE_SIZE, **how)
        return "UCI handwritten digits at 28 x 28", data, REQUIRED_DIGITS_ACCURACY
    # Nobody knows what somebody else's files allow.
    return str(data_dir), mnist.read_data_sets(data_dir, **how), 0.0


@click.command()
@click.option("--steps", type=click.IntRange(min=1), default=300, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--learning-rate", type=float, default=0.001, show_default=True)
@click.option(
    "--dropout", type=click.FloatRange(0, 1, max_open=True), default=0.5, show_default=True
)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the IDX files of MNIST or Fashion-MNIST.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
def main(
    steps: int,
    batch_size: int,
    learning_rate: float,
    dropout: float,
    data_dir: Path | None,
    seed: int,
) -> None:
    """Train a convolutional network on small images and report its held-out accuracy."""
    try:
        name, data, required = read_data(data_dir, seed)
    except (FileNotFoundError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    print(
        f"{name}: {data.train.num_examples} training, {data.validation.num_examples} validation "
        f"and {data.test.num_examples} test examples"
    )
    tf.set_random_seed(seed)
    model = build_model(learning_rate)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        train(session, model, data, steps, batch_size, dropout)
        seconds = time.perf_counter() - start
        accuracy = evaluate(session, model, data.test)
    print(f"{steps} steps in {seconds:.1f} s")
    print(f"held-out accuracy: {accuracy:.4f}")
    if accuracy < required:
        print(
            f"error: the accuracy is below {required}, which 300 steps should reach on this data; "
            "try more --steps or another --learning-rate, and if the defaults fail too, something "
            "in runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
