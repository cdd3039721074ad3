"""Predict clicks: a wide linear model and a deep one, trained together (Cheng et al., 2016).

    python examples/wide_and_deep.py
    python examples/wide_and_deep.py --buckets 5000000

The data are made up: users see items, and click the more often the better their tastes agree, and
more often on some pairs of a user's group and an item's group. Users and items are strings, hashed
into the rows of one large embedding, which is cut into shards; a step touches only the rows of its
batch, so more `--buckets` cost memory and no time. The wide part learns the pairs by FTRL, the deep
part tastes by Adagrad. Under a TF_CONFIG with parameter servers the shards lie on these.
"""

import json
import os
import sys
import time
from typing import Any, NamedTuple

import click
import numpy as np

import runnel as tf

USERS, ITEMS, GROUPS, TASTES = 1_000, 300, 20, 3


class World:
    """Users and items with tastes, and pairs of groups that go together."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.user_taste = rng.normal(size=(USERS, TASTES))
        self.item_taste = rng.normal(size=(ITEMS, TASTES))
        self.user_group = rng.integers(0, GROUPS, USERS)
        self.item_group = rng.integers(0, GROUPS, ITEMS)
        self.pairs = rng.normal(size=(GROUPS, GROUPS)) * 1.5

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Any, Any, Any, np.ndarray]:
        """Return user names, item names, names of their groups as a pair, and clicks."""
        users = np.minimum(rng.zipf(1.2, count) - 1, USERS - 1)
        users = np.where(rng.random(count) < 0.5, users, rng.integers(0, USERS, count))
        items = rng.integers(0, ITEMS, count)
        groups = self.user_group[users], self.item_group[items]
        agree = (self.user_taste[users] * self.item_taste[items]).sum(1)
        clicked = rng.random(count) < 1 / (1 + np.exp(-(agree + self.pairs[groups] - 0.5)))
        return (
            np.char.add("user ", users.astype(str)).astype(object),
            np.char.add("item ", items.astype(str)).astype(object),
            np.array([f"{a} x {b}" for a, b in zip(*groups, strict=True)], object),
            clicked.astype(np.float32),
        )


class Model(NamedTuple):
    """The ends of the graph that training takes hold of."""

    users: Any
    items: Any
    pairs: Any
    clicked: Any
    loss: Any
    probability: Any
    train_op: Any


def build_model(buckets: int, units: int, shards: int) -> Model:
    """Describe both models, their common loss and a training step."""
    users, items, pairs = (
        tf.placeholder(tf.string, [None], name=name) for name in ("users", "items", "pairs")
    )
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    cut = tf.fixed_size_partitioner(shards)
    with tf.variable_scope("deep"):
        embedding = tf.get_variable(
            "embedding",
            [buckets, units],
            initializer=tf.random_normal_initializer(stddev=0.1),
            partitioner=cut,
        )
        ids = tf.stack([tf.string_to_hash_bucket_fast(names, buckets) for names in (users, items)])
        user, item = tf.unstack(tf.nn.embedding_lookup(embedding, ids, partition_strategy="div"))
        hidden = tf.layers.dense(tf.concat([user, item, user * item], 1), 32, tf.nn.relu)
        deep = tf.layers.dense(hidden, 1)[:, 0]
    with tf.variable_scope("wide"):
        weights = tf.get_variable(
            "weights", [buckets, 1], initializer=tf.zeros_initializer(), partitioner=cut
        )
        crossed = tf.string_to_hash_bucket_fast(pairs, buckets)
        wide = tf.nn.embedding_lookup(weights, crossed, partition_strategy="div")[:, 0]
    logits = wide + deep
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
    # Of the sum, so that a row that few examples use moves as far as one that many do.
    total = tf.reduce_sum(losses)
    step = tf.train.get_or_create_global_step()
    train_op = tf.group(
        tf.train.FtrlOptimizer(0.3, l2_regularization_strength=1e-4).minimize(
            total, var_list=tf.trainable_variables("wide")
        ),
        tf.train.AdagradOptimizer(0.2).minimize(
            total, global_step=step, var_list=tf.trainable_variables("deep")
        ),
    )
    return Model(users, items, pairs, clicked, tf.reduce_mean(losses), tf.sigmoid(logits), train_op)


def area_under_curve(probability: np.ndarray, clicked: np.ndarray) -> float:
    """Return how often a click has a higher probability than a non-click."""
    ranks = np.empty(len(probability))
    ranks[np.argsort(probability)] = np.arange(1, len(probability) + 1)
    positive = clicked > 0.5
    count = positive.sum()
    total = ranks[positive].sum() - count * (count + 1) / 2
    return float(total / (count * (len(clicked) - count)))


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


@click.command()
@click.option("--steps", type=click.IntRange(min=1), default=600, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=512, show_default=True)
@click.option(
    "--buckets",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Rows of the embedding.",
)
@click.option("--units", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--shards", type=click.IntRange(min=1), default=2, show_default=True, help="Of each table."
)
@click.option("--seed", type=int, default=0, show_default=True)
def main(steps: int, batch_size: int, buckets: int, units: int, shards: int, seed: int) -> None:
    """Predict clicks with a wide and a deep model over large hashed embeddings."""
    world, rng = World(seed), np.random.default_rng(seed + 1)
    place, target, is_chief, servers = task_of_cluster()
    with tf.device(place):
        tf.set_random_seed(seed)
        model = build_model(buckets, units, max(shards, servers))

    def feed(count: int) -> dict[Any, Any]:
        places = (model.users, model.items, model.pairs, model.clicked)
        return dict(zip(places, world.draw(count, rng), strict=True))

    start = time.perf_counter()
    with tf.train.MonitoredTrainingSession(master=target, is_chief=is_chief) as session:
        for step in range(1, steps + 1):
            loss, _ = session.run([model.loss, model.train_op], feed(batch_size))
            if step % max(1, steps // 5) == 0:
                print(f"step {step}/{steps}: loss {loss:.3f}", flush=True)
        print(f"{steps * batch_size / (time.perf_counter() - start):,.0f} examples a second")
        held_out = feed(10_000)
        area = area_under_curve(session.run(model.probability, held_out), held_out[model.clicked])
    print(f"area under the curve: {area:.3f}")
    if area < 0.8:
        print(
            "error: the model hardly tells clicks from others; try more --steps, and if the "
            "defaults fail too, something in runnel is broken",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
