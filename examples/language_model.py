"""Train a character-level language model with an LSTM, and have it write.

    python examples/language_model.py
    python examples/language_model.py --text my_novel.txt --hidden 256 --epochs 10
    python examples/language_model.py --words --softmax sampled
    runnel up --ps 2 --workers 2 examples/language_model.py --words --softmax sampled

The text is a selection of Shakespeare's sonnets that ships with the examples, or the file that
`--text` names; its last tenth is held out. Reported is the perplexity: how many characters, equally
likely, the model hesitates between. The network reads many places of the text side by side, a few
dozen characters at a time, and carries its state from one piece to the next.

`--words` has it read words in the place of characters. There are many of these, and a softmax over
all costs the most of a step; `--softmax sampled` trains against some sampled ones instead (the
perplexity is that of all), as many as `--num-sampled` says.

Under a TF_CONFIG with parameter servers, as `runnel up` (with `--ray` too) sets it, the embedding
and the softmax are cut into shards that lie on these. A full softmax is computed there, each server
giving the logits of its words; of a sampled one only the rows of the words in question travel. Each
worker reads a part of the text of its own.
"""

import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import runnel as tf

SONNETS = Path(__file__).parent / "data" / "sonnets.txt"
EMBEDDING_SIZE = 32
HELD_OUT = 0.1
PROMPT = 100
NUM_SAMPLED = 48


class Corpus(NamedTuple):
    """A text as numbers of characters, or of words and what is between them."""

    characters: list[str]
    train: np.ndarray
    validation: np.ndarray

    def decode(self, tokens: Any) -> str:
        """Return the text that `tokens` stand for."""
        return "".join(self.characters[token] for token in tokens)


class Place(NamedTuple):
    """Where this process stands in a cluster; alone, it is the first of one worker."""

    devices: Any = None
    target: str = ""
    servers: int = 1
    worker: int = 0
    workers: int = 1


def join_cluster() -> Place:
    """Become the task that TF_CONFIG names, if there is one; a parameter server stays here."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    if not cluster.jobs:
        return Place()
    server = tf.train.Server(cluster, resolver.task_type, resolver.task_id)
    if resolver.task_type == "ps":
        server.join()
    own = f"/job:{resolver.task_type}/task:{resolver.task_id}"
    chiefs = cluster.num_tasks("chief") if "chief" in cluster.jobs else 0
    workers = cluster.num_tasks("worker") if "worker" in cluster.jobs else 0
    return Place(
        tf.train.replica_device_setter(cluster=cluster, worker_device=own),
        server.target,
        cluster.num_tasks("ps"),
        resolver.task_id + (chiefs if resolver.task_type == "worker" else 0),
        chiefs + workers,
    )


class Model(NamedTuple):
    """The ends of the graph that training and evaluation take hold of."""

    tokens: Any
    targets: Any
    keep_prob: Any
    initial_state: Any
    final_state: Any
    loss: Any
    objective: Any
    train_op: Any
    sample: Any


def read_corpus(path: Path, words: bool) -> Corpus:
    """Read a text file and hold out its end."""
    text: Any = path.read_text(encoding="utf-8")
    if words:
        text = re.findall(r"\w+|\s|[^\w\s]", text)
    # The most frequent first: sampled are the sooner the lower their number is.
    characters = [character for character, _ in Counter(text).most_common()]
    numbers = {character: number for number, character in enumerate(characters)}
    tokens = np.array([numbers[character] for character in text], np.int32)
    cut = int(len(tokens) * (1 - HELD_OUT))
    return Corpus(characters, tokens[:cut], tokens[cut:])


def pieces(tokens: np.ndarray, batch_size: int, length: int) -> Iterator[tuple[Any, Any]]:
    """Yield inputs and targets, [batch_size, length]: each row goes on where it ended before."""
    width = (len(tokens) - 1) // batch_size
    inputs = tokens[: batch_size * width].reshape(batch_size, width)
    targets = tokens[1 : batch_size * width + 1].reshape(batch_size, width)
    for start in range(0, width - length + 1, length):
        yield inputs[:, start : start + length], targets[:, start : start + length]


def count_pieces(tokens: np.ndarray, batch_size: int, length: int) -> int:
    """Return how many pairs `pieces` yields."""
    return (len(tokens) - 1) // batch_size // length


def build_model(
    corpus: Corpus,
    hidden: int,
    layers: int,
    learning_rate: float,
    decay: float,
    decay_steps: int,
    clip_norm: float,
    sample_length: int,
    temperature: float,
    num_sampled: int,
    shards: int,
) -> Model:
    """Describe the network, a training step and the writing of a text."""
    vocabulary = len(corpus.characters)
    cut = tf.fixed_size_partitioner(shards)
    tokens = tf.placeholder(tf.int32, [None, None], name="tokens")
    targets = tf.placeholder(tf.int32, [None, None], name="targets")
    keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")
    embedding = tf.get_variable("embedding", [vocabulary, EMBEDDING_SIZE], partitioner=cut)
    cell = tf.nn.rnn_cell.MultiRNNCell(
        [
            tf.nn.rnn_cell.DropoutWrapper(
                tf.nn.rnn_cell.LSTMCell(hidden), output_keep_prob=keep_prob
            )
            for _ in range(layers)
        ]
    )
    # Zeros, unless the state of the piece before is fed in their place.
    initial_state = cell.zero_state(tf.shape(tokens)[0], tf.float32)
    inputs = tf.nn.embedding_lookup(embedding, tokens, partition_strategy="div")
    outputs, final_state = tf.nn.dynamic_rnn(cell, inputs, initial_state=initial_state)
    weights = tf.get_variable("logits/weights", [vocabulary, hidden], partitioner=cut)
    biases = tf.get_variable(
        "logits/biases", [vocabulary], initializer=tf.zeros_initializer(), partitioner=cut
    )

    def to_logits(output: Any) -> Any:
        """The logits of all words: each shard's where it lies."""
        parts = []
        for own, bias in zip(weights, biases, strict=True):
            with tf.colocate_with(own.op):
                parts.append(tf.tensordot(output, own, [[len(output.shape) - 1], [1]]) + bias)
        return tf.concat(parts, -1)

    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=to_logits(outputs))
    )
    objective = loss
    if num_sampled:
        labels = tf.cast(tf.reshape(targets, [-1, 1]), tf.int64)
        objective = tf.reduce_mean(
            tf.nn.sampled_softmax_loss(
                weights,
                biases,
                labels,
                tf.reshape(outputs, [-1, hidden]),
                num_sampled,
                vocabulary,
                partition_strategy="div",
            )
        )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(learning_rate, step, decay_steps, decay, staircase=True)
    optimizer = tf.train.AdamOptimizer(rate)
    gradients, variables = zip(*optimizer.compute_gradients(objective), strict=True)
    # Through many steps gradients can grow without bounds (Pascanu et al., 2013).
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
    train_op = optimizer.apply_gradients(zip(clipped, variables, strict=True), global_step=step)

    def draw(output: Any) -> Any:
        """Draw a character: the network says how likely each is."""
        return tf.multinomial(to_logits(output) / temperature, 1)[:, 0]

    def write(time: Any, output: Any, state: Any, token: Any) -> Any:
        """Feed the network the character that was drawn from its last output."""
        if output is None:  # go on from what was read
            drawn = draw(outputs[:, -1])
            emitted, state = tf.zeros([], tf.int64), final_state
        else:
            drawn, emitted = draw(output), token
        finished = tf.fill([1], time >= sample_length)
        fed = tf.nn.embedding_lookup(embedding, drawn, partition_strategy="div")
        return finished, fed, state, emitted, drawn

    written, _, _ = tf.nn.raw_rnn(cell, write)
    sample = written.stack()[:, 0]
    ends = tokens, targets, keep_prob, initial_state, final_state
    return Model(*ends, loss, objective, train_op, sample)


def feed_state(model: Model, state: Any) -> dict[Any, Any]:
    """Return what to feed for the network to start from `state`; None for zeros."""
    if state is None:
        return {}
    pairs = zip(model.initial_state, state, strict=True)
    return {place: value for to, given in pairs for place, value in zip(to, given, strict=True)}


def train_epoch(
    session: Any, model: Model, data: Iterator[tuple[Any, Any]], keep_prob: float
) -> Iterator[float]:
    """Train on the pieces of one pass through the text; yield the loss of each."""
    state = None
    for tokens, targets in data:
        feed = feed_state(model, state)
        feed |= {model.tokens: tokens, model.targets: targets, model.keep_prob: keep_prob}
        loss, state, _ = session.run([model.objective, model.final_state, model.train_op], feed)
        yield float(loss)


def evaluate(session: Any, model: Model, data: Iterator[tuple[Any, Any]]) -> float:
    """Return the perplexity on a whole text."""
    state, losses = None, []
    for tokens, targets in data:
        feed = feed_state(model, state) | {model.tokens: tokens, model.targets: targets}
        loss, state = session.run([model.loss, model.final_state], feed)
        losses.append(loss)
    return math.exp(np.mean(losses))


def progress_bar() -> Progress | None:
    """Return a bar for the terminal, or None where there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    return Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
        console=console,
    )


def train(
    session: Any,
    model: Model,
    corpus: Corpus,
    epochs: int,
    batch_size: int,
    length: int,
    keep_prob: float,
    place: Place,
) -> float:
    """Go through a worker's text `epochs` times; return the perplexity on what was held out."""
    text = np.array_split(corpus.train, place.workers)[place.worker]
    held_out_batch = max(1, min(batch_size, (len(corpus.validation) - 1) // length))
    bar = progress_bar()
    task = None
    if bar is not None:
        steps = epochs * count_pieces(text, batch_size, length)
        task = bar.add_task("training", total=steps, status="")
        bar.start()
    held_out = math.nan
    try:
        for epoch in range(1, epochs + 1):
            total, data = 0.0, pieces(text, batch_size, length)
            for number, loss in enumerate(train_epoch(session, model, data, keep_prob), start=1):
                total += loss
                perplexity = math.exp(total / number)
                if bar is not None and task is not None:
                    status = f"epoch {epoch}: perplexity {perplexity:.2f}, held out {held_out:.2f}"
                    bar.update(task, advance=1, status=status)
            held_out = evaluate(session, model, pieces(corpus.validation, held_out_batch, length))
            if bar is None:
                print(
                    f"epoch {epoch}/{epochs}: perplexity {perplexity:.2f}, "
                    f"validation perplexity {held_out:.2f}",
                    flush=True,
                )
    finally:
        if bar is not None:
            bar.stop()
    return held_out


@click.command()
@click.option(
    "--text",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=SONNETS,
    help="A text file to learn from, instead of the sonnets.",
)
@click.option("--words", is_flag=True, help="Read words in the place of characters.")
@click.option(
    "--softmax",
    type=click.Choice(["full", "sampled"]),
    help="Train against all characters or words, or against some that are sampled.",
)
@click.option(
    "--num-sampled",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help=f"How many are sampled; 0 for {NUM_SAMPLED}, or all with the full softmax.",
)
@click.option("--epochs", type=click.IntRange(min=1), default=15, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=16, show_default=True)
@click.option(
    "--length",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Characters that a gradient goes back through.",
)
@click.option("--hidden", type=click.IntRange(min=1), default=128, show_default=True)
@click.option("--layers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--keep-prob",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.8,
    show_default=True,
    help="1 for no dropout.",
)
@click.option("--learning-rate", type=float, default=0.01, show_default=True)
@click.option(
    "--decay",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.93,
    show_default=True,
    help="Of the learning rate, at each epoch.",
)
@click.option("--clip-norm", type=float, default=5.0, show_default=True)
@click.option("--sample-length", type=click.IntRange(min=1), default=400, show_default=True)
@click.option(
    "--temperature",
    type=click.FloatRange(0, min_open=True),
    default=0.7,
    show_default=True,
    help="Lower is safer, higher is wilder.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
def main(
    text: Path,
    words: bool,
    softmax: str | None,
    num_sampled: int,
    epochs: int,
    batch_size: int,
    length: int,
    hidden: int,
    layers: int,
    keep_prob: float,
    learning_rate: float,
    decay: float,
    clip_norm: float,
    sample_length: int,
    temperature: float,
    seed: int,
) -> None:
    """Train a character-level language model with an LSTM, and have it write."""
    try:
        corpus = read_corpus(text, words)
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{text} is not a text in UTF-8: {error}") from error
    what = "words" if words else "characters"
    place = join_cluster()
    steps = count_pieces(corpus.train, place.workers * batch_size, length)
    if steps < 1 or len(corpus.validation) <= length:
        raise click.ClickException(
            f"{text} has {len(corpus.train) + len(corpus.validation)} {what}, too few for "
            f"--batch-size {batch_size} and --length {length}; try smaller ones"
        )
    uniform = len(corpus.characters)
    if softmax == "full" and num_sampled:
        raise click.ClickException("--softmax full samples nothing: leave --num-sampled out")
    if softmax == "sampled" and not num_sampled:
        num_sampled = NUM_SAMPLED
    if num_sampled >= uniform:
        raise click.ClickException(f"--num-sampled must be less than {uniform}, all there are")
    print(
        f"{text.name}: {len(corpus.train)} {what} to learn from, {len(corpus.validation)} held "
        f"out; {uniform} different ones (guessing has perplexity {uniform})"
    )
    with tf.device(place.devices):
        tf.set_random_seed(seed)
        model = build_model(
            corpus,
            hidden,
            layers,
            learning_rate,
            decay,
            steps * place.workers,
            clip_norm,
            sample_length,
            temperature,
            num_sampled,
            place.servers,
        )
    with tf.train.MonitoredTrainingSession(
        master=place.target, is_chief=place.worker == 0
    ) as session:
        start = time.perf_counter()
        perplexity = train(session, model, corpus, epochs, batch_size, length, keep_prob, place)
        seconds = time.perf_counter() - start
        # A network at its very first character is at a loss, so it reads a little before.
        read = corpus.train[-PROMPT:]
        written = corpus.decode(session.run(model.sample, {model.tokens: read[None, :]}))
    tokens_read = epochs * steps * batch_size * length
    print(
        f"{epochs * steps} steps in {seconds:.1f} s, {tokens_read / seconds:,.0f} {what} a second"
    )
    print(f"\n{written}\n")
    print(f"validation perplexity: {perplexity:.2f}")
    if not perplexity < uniform:
        print(
            "error: the model predicts no better than guessing; try more --epochs or a lower "
            "--learning-rate, and if the defaults fail too, something in runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
