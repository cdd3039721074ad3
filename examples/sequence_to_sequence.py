"""Translate dates as people write them into ISO dates, with a sequence-to-sequence network.

    python examples/sequence_to_sequence.py
    python examples/sequence_to_sequence.py --steps 600 --beam-width 5

A bidirectional recurrent network reads "Sunday, 2 November 2014" character by character, and
another one, which attends to what was read, writes "2014-11-02". The data are made up here; one
date in ten is held out, whichever way it is written.
"""

import datetime
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import runnel as tf

seq2seq = tf.contrib.seq2seq

FIRST_DAY = datetime.date(1970, 1, 1)
DAYS = 60 * 365
HELD_OUT = 10  # one day in so many
FORMATS = (
    "%A, {d} %B %Y",
    "{d} %b %Y",
    "%B {d}, %Y",
    "%m/%d/%Y",
    "{d} of %B, %Y",
    "%Y %b {d}",
)
ALPHABET = sorted("0123456789 ,/-" + "abcdefghijklmnopqrstuvwxyz")
PAD, GO, END = 0, 1, 2
FIRST_CHARACTER = 3
VOCABULARY = FIRST_CHARACTER + len(ALPHABET)
ISO_LENGTH = len("2014-11-02")
EMBEDDING = 32
UNITS = 64
REPORTS = 10
# What the default number of steps should reach; less means that something is broken.
REQUIRED_ACCURACY = 0.95


class Batch(NamedTuple):
    """Dates as numbered characters: [examples, characters], and the lengths of the sources."""

    sources: np.ndarray
    lengths: np.ndarray
    targets: np.ndarray


class Model(NamedTuple):
    """The ends of the graph that a training loop takes hold of."""

    sources: Any
    lengths: Any
    targets: Any
    loss: Any
    train_op: Any
    greedy: Any
    beams: Any


def encode(text: str) -> list[int]:
    """Number the characters of a text."""
    return [FIRST_CHARACTER + ALPHABET.index(character) for character in text]


def decode(ids: Any) -> str:
    """Return the text of numbered characters, up to the end token."""
    text = ""
    for number in ids:
        if number == END:
            break
        text += ALPHABET[number - FIRST_CHARACTER] if number >= FIRST_CHARACTER else "?"
    return text


def write_dates(rng: np.random.Generator, count: int, held_out: bool) -> list[tuple[str, str]]:
    """Make up pairs of a written date and its ISO form."""
    pairs: list[tuple[str, str]] = []
    while len(pairs) < count:
        number = int(rng.integers(DAYS))
        if (number % HELD_OUT == 0) != held_out:
            continue
        day = FIRST_DAY + datetime.timedelta(number)
        form = FORMATS[rng.integers(len(FORMATS))]
        pairs.append((day.strftime(form.format(d=day.day)).lower(), day.isoformat()))
    return pairs


def make_batch(pairs: list[tuple[str, str]]) -> Batch:
    """Number the characters of pairs of dates, the shorter sources padded."""
    lengths = np.array([len(source) for source, _ in pairs])
    sources = np.full((len(pairs), lengths.max()), PAD)
    for row, (source, _) in enumerate(pairs):
        sources[row, : len(source)] = encode(source)
    return Batch(sources, lengths, np.array([[*encode(target), END] for _, target in pairs]))


def build_model(learning_rate: float, beam_width: int) -> Model:
    """Describe encoder, decoder, training step and both kinds of search; nothing is run yet."""
    sources = tf.placeholder(tf.int32, [None, None], name="sources")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    targets = tf.placeholder(tf.int32, [None, ISO_LENGTH + 1], name="targets")
    batch_size = tf.shape(sources)[0]
    table = tf.get_variable("characters", [VOCABULARY, EMBEDDING])

    (forward, backward), states = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(UNITS),
        tf.nn.rnn_cell.GRUCell(UNITS),
        tf.nn.embedding_lookup(table, sources),
        sequence_length=lengths,
        dtype=tf.float32,
    )
    memory = tf.concat([forward, backward], 2)
    begin = tf.layers.dense(tf.concat(states, 1), UNITS, tf.tanh, name="begin")
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    projection = tf.layers.Dense(VOCABULARY, name="projection")

    def attend(beams: int) -> tuple[Any, Any]:
        """Wrap the cell with attention to the memory, repeated for each beam."""
        places, counts, state = seq2seq.tile_batch((memory, lengths, begin), beams)
        attention = seq2seq.BahdanauAttention(UNITS, places, counts)
        attending = seq2seq.AttentionWrapper(cell, attention, UNITS)
        initial = attending.zero_state(batch_size * beams, tf.float32)
        return attending, initial.clone(cell_state=state)

    with tf.variable_scope("decode"):
        attending, initial = attend(1)
        shifted = tf.concat([tf.fill([batch_size, 1], GO), targets[:, :-1]], 1)
        truth = seq2seq.TrainingHelper(
            tf.nn.embedding_lookup(table, shifted), tf.fill([batch_size], ISO_LENGTH + 1)
        )
        trained, _, _ = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(attending, truth, initial, projection)
        )
    weights = tf.ones([batch_size, ISO_LENGTH + 1])
    loss = seq2seq.sequence_loss(trained.rnn_output, targets, weights)
    optimizer = tf.train.AdamOptimizer(learning_rate)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
    train_op = optimizer.apply_gradients(zip(clipped, variables, strict=True))

    start = tf.fill([batch_size], GO)
    with tf.variable_scope("decode", reuse=True):
        attending, initial = attend(1)
        likeliest = seq2seq.GreedyEmbeddingHelper(table, start, END)
        greedy, _, _ = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(attending, likeliest, initial, projection),
            maximum_iterations=ISO_LENGTH + 1,
        )
    with tf.variable_scope("decode", reuse=True):
        attending, initial = attend(beam_width)
        beams, _, _ = seq2seq.dynamic_decode(
            seq2seq.BeamSearchDecoder(
                attending, table, start, END, initial, beam_width, projection
            ),
            maximum_iterations=ISO_LENGTH + 1,
        )
    return Model(
        sources, lengths, targets, loss, train_op, greedy.sample_id, beams.predicted_ids[:, :, 0]
    )


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


def train(session: Any, model: Model, rng: np.random.Generator, steps: int, size: int) -> None:
    """Run the training steps, saying now and then how it goes."""
    interval = max(1, steps // REPORTS)
    for step, progress in report_progress(steps):
        batch = make_batch(write_dates(rng, size, held_out=False))
        feed = dict(zip((model.sources, model.lengths, model.targets), batch, strict=True))
        loss, _ = session.run([model.loss, model.train_op], feed)
        if step % interval and step != steps:
            continue
        if progress is None:
            print(f"step {step}/{steps}: loss {loss:.4f}", flush=True)
        else:
            progress.update(progress.task_ids[0], status=f"loss {loss:.4f}")


def translate(session: Any, model: Model, ids: Any, pairs: list[tuple[str, str]]) -> list[str]:
    """Return what the network makes of written dates, with one of its two searches."""
    batch = make_batch(pairs)
    found = session.run(ids, {model.sources: batch.sources, model.lengths: batch.lengths})
    return [decode(row) for row in found]


def exact_matches(found: list[str], pairs: list[tuple[str, str]]) -> float:
    """Return the part of the translations that is right in every character."""
    return sum(a == b for a, (_, b) in zip(found, pairs, strict=True)) / len(pairs)


@click.command()
@click.option("--steps", type=click.IntRange(min=1), default=300, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--learning-rate", type=float, default=0.003, show_default=True)
@click.option(
    "--beam-width", type=click.IntRange(min=1, max=VOCABULARY), default=3, show_default=True
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
def main(steps: int, batch_size: int, learning_rate: float, beam_width: int, seed: int) -> None:
    """Train a sequence-to-sequence network on dates and report how many held-out ones it gets."""
    tf.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    held_out = write_dates(rng, 500, held_out=True)
    model = build_model(learning_rate, beam_width)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        train(session, model, rng, steps, batch_size)
        seconds = time.perf_counter() - start
        greedy = translate(session, model, model.greedy, held_out)
        best = translate(session, model, model.beams, held_out)
    print(f"{steps} steps in {seconds:.1f} s")
    for (source, _), found in list(zip(held_out, best, strict=True))[:5]:
        print(f"  {source:>32} -> {found}")
    print(f"held-out exact matches, beam search: {exact_matches(best, held_out):.4f}")
    accuracy = exact_matches(greedy, held_out)
    print(f"held-out exact-match accuracy: {accuracy:.4f}")
    if accuracy < REQUIRED_ACCURACY:
        print(
            f"error: the accuracy is below {REQUIRED_ACCURACY}, which 300 steps should reach; try "
            "more --steps or another --learning-rate, and if the defaults fail too, something in "
            "runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
