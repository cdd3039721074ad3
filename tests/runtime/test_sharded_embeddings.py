"""Tables cut over tasks: only the rows that a step uses travel, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.queues.rendezvous import Rendezvous
from tests.both_tiers import COMPILED, INTERPRETED
from tests.runtime import parts
from tests.runtime.parts import Tasks

WIDTH, EXAMPLES, CLASSES = 4, 6, 3
TASKS = {0: "worker", 1: "ps0", 2: "ps1"}


def on_parameter_servers(op: Any) -> str:
    """Variables on the second and third device in turn, the rest on the first."""
    if op.type in ("VariableV2", "VarHandleOp"):
        graph = tf.get_default_graph()
        made = sum(o.type in ("VariableV2", "VarHandleOp") for o in graph.get_operations())
        return f"/cpu:{1 + made % 2}"
    return "/cpu:0"


def rows_of(table: Any, ids: Any) -> Any:
    return tf.reduce_mean(tf.nn.embedding_lookup(table, ids, "div"), 1)


def as_sparse(ids: Any) -> Any:
    everywhere = tf.where(tf.ones_like(ids, tf.bool))
    return tf.SparseTensor(everywhere, tf.reshape(ids, [-1]), tf.shape(ids, out_type=tf.int64))


def combined_rows(table: Any, ids: Any) -> Any:
    return tf.nn.embedding_lookup_sparse(
        table, as_sparse(ids), None, "div", combiner="sum", max_norm=2.0
    )


def safely_combined_rows(table: Any, ids: Any) -> Any:
    return tf.nn.safe_embedding_lookup_sparse(table, as_sparse(ids))


MODELS = {"rows": rows_of, "combined rows": combined_rows, "safely": safely_combined_rows}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}


def described(model: Any, rows: int, optimizer: Any, shards: int, resource: bool) -> Any:
    """Placeholders for ids and labels, the loss, a training step."""
    ids = tf.placeholder(tf.int64, [EXAMPLES, None], name="ids")
    labels = tf.placeholder(tf.int64, [EXAMPLES], name="labels")
    partitioner = tf.fixed_size_partitioner(shards) if shards > 1 else None
    values = np.random.default_rng(0).normal(size=(rows, WIDTH)).astype(np.float32)

    def initial(shape: Any, dtype: Any, partition_info: Any = None) -> Any:
        start = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(values[start : start + shape[0]])

    table = tf.get_variable(
        "table",
        [rows, WIDTH],
        initializer=initial,
        partitioner=partitioner,
        use_resource=resource,
    )
    weights = tf.get_variable("weights", initializer=np.eye(WIDTH, CLASSES, dtype=np.float32))
    logits = tf.matmul(model(table, ids), weights)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    return ids, labels, loss, optimizer().minimize(loss), table


class WeighedRendezvous(Rendezvous):
    """Adds up the bytes that are sent."""

    total = 0

    def put(self, key: str, sent: Any) -> None:
        for value in sent if type(sent) is tuple else (sent,):
            WeighedRendezvous.total += np.asarray(value).nbytes
        super().put(key, sent)


def bytes_of_a_step(
    monkeypatch: Any, model: Any, rows: int, optimizer: Any, resource: bool, level: int
) -> tuple[int, list[float]]:
    """What the second step of a cluster sends, and the losses of three steps."""
    monkeypatch.setattr(parts, "Rendezvous", WeighedRendezvous)
    rng = np.random.default_rng(1)
    with tf.Graph().as_default(), tf.device(on_parameter_servers):
        ids, labels, loss, train, table = described(model, rows, optimizer, 2, resource)
        shards = list(table)
        assert {shard.device for shard in shards} == {"/device:CPU:1", "/device:CPU:2"}
        cluster = Tasks(lambda device: TASKS[device.index], level)
        cluster.run([tf.global_variables_initializer()])
        assert set(cluster.tasks) == {"worker", "ps0", "ps1"}
        losses, sent = [], 0
        for _ in range(3):
            feed = {ids: rng.integers(0, 64, (EXAMPLES, 3)), labels: rng.integers(0, 3, EXAMPLES)}
            WeighedRendezvous.total = 0
            losses.append(float(cluster.run([loss, train], feed)[0]))
            sent = WeighedRendezvous.total
    return sent, losses


def losses_in_one_process(model: Any, rows: int, optimizer: Any) -> list[float]:
    rng = np.random.default_rng(1)
    with tf.Graph().as_default(), tf.Session() as sess:
        ids, labels, loss, train, _ = described(model, rows, optimizer, 1, False)
        sess.run(tf.global_variables_initializer())
        losses = []
        for _ in range(3):
            feed = {ids: rng.integers(0, 64, (EXAMPLES, 3)), labels: rng.integers(0, 3, EXAMPLES)}
            losses.append(float(sess.run([loss, train], feed)[0]))
        return losses


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize(
    ("model", "name"),
    [*(("rows", name) for name in OPTIMIZERS), ("combined rows", "adagrad"), ("safely", "ftrl")],
)
def test_what_travels_does_not_depend_on_the_size_of_the_table(monkeypatch, model, name, resource):
    args = MODELS[model], OPTIMIZERS[name]
    sent, losses = bytes_of_a_step(monkeypatch, args[0], 64, args[1], resource, INTERPRETED)
    more, _ = bytes_of_a_step(monkeypatch, args[0], 6400, args[1], resource, INTERPRETED)
    # The ids are 0 to 63: with "div" in both shards of the small table, in the first of the large.
    assert more <= sent
    uses = EXAMPLES * 3 * WIDTH * 4
    assert sent < 8 * uses + 2000
    np.testing.assert_allclose(losses, losses_in_one_process(args[0], 64, args[1]), rtol=1e-5)


def test_so_it_is_when_the_parts_are_compiled(monkeypatch):
    args = rows_of, 6400, OPTIMIZERS["adagrad"], False
    sent, losses = bytes_of_a_step(monkeypatch, *args, COMPILED)
    assert sent < 8 * EXAMPLES * 3 * WIDTH * 4 + 2000
    np.testing.assert_allclose(losses, losses_in_one_process(*args[:3]), rtol=1e-5)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_shapes_that_are_not_known_before_are_found_where_the_shards_are(monkeypatch, strategy):
    monkeypatch.setattr(parts, "Rendezvous", WeighedRendezvous)
    sent = []
    for rows in (32, 3200):
        with tf.Graph().as_default(), tf.device(on_parameter_servers):
            given = tf.placeholder(tf.float32)
            shards = [tf.Variable(given, validate_shape=False) for _ in range(2)]
            ids = tf.placeholder(tf.int64, [None])
            found = tf.nn.embedding_lookup(shards, ids, strategy)
            train = tf.train.AdagradOptimizer(0.1).apply_gradients(
                zip(tf.gradients(tf.square(found), shards), shards, strict=True)
            )
            cluster = Tasks(lambda device: TASKS[device.index], INTERPRETED)
            cluster.run(
                [tf.global_variables_initializer()], {given: np.ones((rows, WIDTH), np.float32)}
            )
            WeighedRendezvous.total = 0
            cluster.run([train], {ids: np.array([1, 5, 5, 40])})
            sent.append(WeighedRendezvous.total)
    assert sent[0] == sent[1]
