"""Learn vectors of words from which words stand near which (skip-gram, Mikolov et al., 2013).

    python examples/word2vec.py
    python examples/word2vec.py --text my_novel.txt

Without `--text` the words are made up: each belongs to one of 40 topics, and the words of a
sentence to the same one. Nobody tells the network the topics; reported is how often the nearest
neighbour of a frequent word is of its topic, where guessing has 1 in 40. With a text of yours it
prints neighbours.

The vectors are an embedding that is cut into shards, trained by noise-contrastive estimation: a
step looks at the words of its batch and at some sampled ones, never at the whole vocabulary. Under
a TF_CONFIG with parameter servers the shards lie on these, and only rows travel.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import runnel as tf

TOPICS = 40
FREQUENT = 400


class Corpus(NamedTuple):
    """A text as numbers of words, the most frequent word being 0."""

    words: list[str]
    tokens: np.ndarray
    counts: np.ndarray


def made_up_text(words: int, sentences: int, rng: np.random.Generator) -> str:
    """Sentences of ten words, each about one topic; word `t7_12` is of topic 7."""
    each = words // TOPICS
    # Zipf's law: the k-th word of a topic comes 1/k as often as the first.
    weights = 1 / np.arange(1, each + 1)
    ranks = rng.choice(each, (sentences, 10), p=weights / weights.sum())
    topics = rng.integers(0, TOPICS, sentences)
    return "\n".join(
        " ".join(f"t{topic}_{rank}" for rank in row)
        for topic, row in zip(topics, ranks, strict=True)
    )


def read_corpus(text: str, least: int) -> Corpus:
    """Number the words that come at least `least` times by their frequency."""
    split = re.findall(r"\w+", text.lower())
    common = [(word, n) for word, n in Counter(split).most_common() if n >= least]
    numbers = {word: number for number, (word, _) in enumerate(common)}
    tokens = np.array([numbers[word] for word in split if word in numbers], np.int64)
    return Corpus([word for word, _ in common], tokens, np.array([n for _, n in common]))


def batches(
    corpus: Corpus, batch_size: int, window: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield words and one neighbour of each, for ever."""
    while True:
        centers = rng.integers(window, len(corpus.tokens) - window, batch_size)
        distance = rng.integers(1, window + 1, batch_size) * rng.choice([-1, 1], batch_size)
        yield corpus.tokens[centers], corpus.tokens[centers + distance][:, None]


class Model(NamedTuple):
    """The ends of the graph that training takes hold of."""

    words: Any
    neighbours: Any
    loss: Any
    train_op: Any
    vectors: Any
    asked: Any


def build_model(
    corpus: Corpus, units: int, num_sampled: int, shards: int, learning_rate: float, seed: int
) -> Model:
    """Describe the embedding, the loss and a training step."""
    vocabulary = len(corpus.words)
    words = tf.placeholder(tf.int64, [None], name="words")
    neighbours = tf.placeholder(tf.int64, [None, 1], name="neighbours")
    with tf.variable_scope("word2vec", partitioner=tf.fixed_size_partitioner(shards)):
        bound = 0.5 / units
        embedding = tf.get_variable(
            "embedding",
            [vocabulary, units],
            initializer=tf.random_uniform_initializer(-bound, bound, seed=seed),
        )
        weights = tf.get_variable(
            "weights",
            [vocabulary, units],
            initializer=tf.truncated_normal_initializer(stddev=units**-0.5, seed=seed + 1),
        )
        biases = tf.get_variable("biases", [vocabulary], initializer=tf.zeros_initializer())
    # Noise is drawn as frequent as words are, rare ones a little more often.
    noise = tf.nn.fixed_unigram_candidate_sampler(
        neighbours,
        num_true=1,
        num_sampled=num_sampled,
        unique=True,
        range_max=vocabulary,
        distortion=0.75,
        unigrams=corpus.counts.tolist(),
        seed=seed,
    )
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights,
            biases,
            neighbours,
            tf.nn.embedding_lookup(embedding, words, partition_strategy="div"),
            num_sampled,
            vocabulary,
            sampled_values=noise,
            partition_strategy="div",
        )
    )
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdagradOptimizer(learning_rate).minimize(loss, global_step=step)
    asked = tf.placeholder(tf.int64, [None], name="asked")
    vectors = tf.nn.l2_normalize(tf.nn.embedding_lookup(embedding, asked, "div"), 1)
    return Model(words, neighbours, loss, train_op, vectors, asked)


def task_of_cluster() -> tuple[Any, str, bool, int]:
    """What TF_CONFIG says: where variables go, the session's target, whether to begin, servers."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    if not config.get("cluster"):
        return None, "", True, 0
    task, cluster = config["task"], tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, task["type"], task["index"])
    if task["type"] == "ps":
        server.join()
    place = tf.train.replica_device_setter(
        cluster=cluster, worker_device=f"/job:{task['type']}/task:{task['index']}"
    )
    is_chief = task["type"] == "chief" or ("chief" not in cluster.jobs and task["index"] == 0)
    return place, server.target, is_chief, cluster.num_tasks("ps")


def neighbours_of(vectors: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return the word whose vector is nearest to each of `which`, but not itself."""
    near = vectors[which] @ vectors.T
    near[np.arange(len(which)), which] = -np.inf
    return near.argmax(1)


@click.command()
@click.option(
    "--text",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text file to learn from, instead of made-up sentences.",
)
@click.option("--steps", type=click.IntRange(min=1), default=1500, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=256, show_default=True)
@click.option("--units", type=click.IntRange(min=1), default=32, show_default=True)
@click.option("--window", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--num-sampled", type=click.IntRange(min=1), default=32, show_default=True)
@click.option(
    "--shards", type=click.IntRange(min=1), default=2, show_default=True, help="Of each table."
)
@click.option("--learning-rate", type=float, default=1.0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def main(
    text: Path | None,
    steps: int,
    batch_size: int,
    units: int,
    window: int,
    num_sampled: int,
    shards: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Learn vectors of words by noise-contrastive estimation over sharded embeddings."""
    rng = np.random.default_rng(seed)
    if text is None:
        corpus = read_corpus(made_up_text(2_000, 20_000, rng), 1)
    else:
        corpus = read_corpus(text.read_text(encoding="utf-8"), 2)
    if len(corpus.words) <= num_sampled or len(corpus.tokens) <= 2 * window:
        raise click.ClickException(
            f"the text has {len(corpus.words)} words that come twice, too few for "
            f"--num-sampled {num_sampled}; try fewer, or a longer text"
        )
    print(f"{len(corpus.tokens)} words to learn from, {len(corpus.words)} different ones")
    place, target, is_chief, servers = task_of_cluster()
    with tf.device(place):
        tf.set_random_seed(seed)
        model = build_model(corpus, units, num_sampled, max(shards, servers), learning_rate, seed)
    data, start = batches(corpus, batch_size, window, rng), time.perf_counter()
    with tf.train.MonitoredTrainingSession(master=target, is_chief=is_chief) as session:
        for step in range(1, steps + 1):
            words, near = next(data)
            feed = {model.words: words, model.neighbours: near}
            loss, _ = session.run([model.loss, model.train_op], feed)
            if step % max(1, steps // 5) == 0:
                print(f"step {step}/{steps}: loss {loss:.3f}", flush=True)
        seconds = time.perf_counter() - start
        print(f"{steps * batch_size / seconds:,.0f} words a second")
        vectors = session.run(model.vectors, {model.asked: np.arange(len(corpus.words))})
    frequent = np.arange(min(FREQUENT, len(corpus.words)))
    nearest = neighbours_of(vectors, frequent)
    if text is not None:
        for word, near in zip(frequent[:20], nearest, strict=False):
            print(f"{corpus.words[word]}: {corpus.words[near]}")
        return
    topics = np.array([int(word[1:].partition("_")[0]) for word in corpus.words])
    share = float((topics[frequent] == topics[nearest]).mean())
    print(f"neighbours of the same topic: {share:.3f}")
    if share < 0.5:
        print(
            "error: vectors of a topic do not lie together; try more --steps, and if the defaults "
            "fail too, something in runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
