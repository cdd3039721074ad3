"""The graphs of the evaluation: one worker's view of a model on parameter servers.

Each function takes the module that offers TensorFlow's names, so that runnel and TensorFlow run the
same program. Variables lie on the first `servers` tasks of the job `ps`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MEGA = 1 << 20
ROWS, WIDTH = 32, 64
"""Rows that a sparse null step reads from each server, and the numbers in a row."""
BATCH = 64
WORDS, UNITS, SENTENCES, LENGTH, SAMPLED = 40_000, 256, 8, 10, 512


@dataclass(frozen=True)
class WorkerProgram:
    """What a worker does: once at first, and then again and again."""

    fetches: Any
    initializer: Any
    feeds: dict[Any, Any]
    begin: Callable[[Any], None] = lambda session: None
    """When the variables are there; a synchronous chief starts what applies updates."""
    release: Callable[[Any], object] = lambda session: None
    """Lets workers go that wait for an update which will not come."""
    end: Callable[[Any], object] = lambda session: None
    """When the last step is over; threads of the worker's end."""
    dropped: Any = None


def null_step(
    tf: Any, index: int, workers: int, servers: int, kind: str, megabytes: float = 0.0
) -> WorkerProgram:
    """Reads values from every server, does nothing with them, and waits for the other workers.

    A worker says that it has come by one queue; the first worker waits for all and then puts a
    token for each of the others into another. It needs none itself: if it did, a fast worker could
    take it, and all would wait for who waits. Both queues are on the first server.
    """
    here = f"/job:worker/task:{index}"
    random = np.random.default_rng(index)
    variables, read, feeds = [], [], {}
    for number in range(servers):
        with tf.device(f"/job:ps/task:{number}"):
            shape = {
                "scalar": [],
                "dense": [int(megabytes * MEGA / 4 / servers)],
                "sparse": [int(megabytes * MEGA / 4 / WIDTH / servers), WIDTH],
            }[kind]
            start = tf.ones(shape)
            variable = tf.get_variable(f"v{number}", initializer=start, use_resource=False)
            variables.append(variable)
            value = variable
            if kind == "sparse":
                rows = tf.placeholder(tf.int32, [ROWS])
                feeds[rows] = random.integers(0, shape[0], ROWS).astype(np.int32)
                value = tf.gather(variable, rows)
        with tf.device(here):
            read.append(tf.reshape(tf.identity(value), [-1])[:1])
    with tf.device(here):
        nothing = tf.add_n(read)
    with tf.device("/job:ps/task:0"):
        come = tf.FIFOQueue(-1, tf.int32, shapes=[()], shared_name="come")
        go = tf.FIFOQueue(-1, tf.int32, shapes=[()], shared_name="go")
        with tf.control_dependencies([nothing]):
            told = come.enqueue(0)
        with tf.control_dependencies([told]):
            if index == 0:
                waited = go.enqueue_many(come.dequeue_many(workers)[1:])
            else:
                waited = go.dequeue().op
        many = tf.zeros([2 * workers], tf.int32)
        release = tf.group(come.enqueue_many(many), go.enqueue_many(many))
    initializer = tf.group(*[variable.initializer for variable in variables])
    return WorkerProgram(
        [nothing, waited], initializer, feeds, release=lambda session: session.run(release)
    )


def perceptron(
    tf: Any,
    index: int,
    workers: int,
    servers: int,
    wait: Callable[[], None] | None = None,
    aggregated: int | None = None,
    elastic: bool = False,
) -> WorkerProgram:
    """Trains a perceptron 784-256-10; with ``aggregated``, by synchronous updates of so many.

    With ``elastic`` a table says who goes on, in place of a queue of tokens (not in TensorFlow).
    ``wait`` is called in every step between reading the variables and updating them: it stands for
    the work of an accelerator.
    """
    random = np.random.default_rng(index)
    place = tf.train.replica_device_setter(
        ps_tasks=servers, worker_device=f"/job:worker/task:{index}"
    )
    with tf.device(place):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [BATCH, 784])
        labels = tf.placeholder(tf.int32, [BATCH])
        seen = _waited_for(tf, images, wait) if wait is not None else images
        values = seen
        for number, (inputs, outputs) in enumerate([(784, 256), (256, 10)]):
            start = tf.random_normal([inputs, outputs], stddev=0.05, seed=number)
            weights = tf.get_variable(f"w{number}", initializer=start, use_resource=False)
            biases = tf.get_variable(
                f"b{number}", initializer=tf.zeros([outputs]), use_resource=False
            )
            values = tf.matmul(values, weights) + biases
            values = tf.nn.relu(values) if outputs != 10 else values
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=values)
        loss = tf.reduce_mean(losses)
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        if aggregated is not None:
            more = {"worker_index": index, "lease_seconds": 60.0} if elastic else {}
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, aggregated, workers, **more)
        train = optimizer.minimize(loss, global_step=step)
        feeds = {
            images: random.normal(size=(BATCH, 784)).astype(np.float32),
            labels: random.integers(0, 10, BATCH).astype(np.int32),
        }
        initializer = tf.global_variables_initializer()
        if aggregated is None:
            return WorkerProgram([train, loss], initializer, feeds)
        if elastic:
            return _elastic(tf, optimizer, index, [train, loss, step], initializer, feeds)
        tokens = optimizer.get_init_tokens_op(2 * workers)

    def begin(session: Any) -> None:
        session.run(optimizer.chief_init_op if index == 0 else optimizer.local_step_init_op)
        if index == 0:
            runner = optimizer.get_chief_queue_runner()
            runner.create_threads(session, coord=tf.train.Coordinator(), daemon=True, start=True)

    return WorkerProgram(
        [train, loss, step],
        initializer,
        feeds,
        begin,
        release=lambda session: session.run(tokens),
    )


def _elastic(
    tf: Any, optimizer: Any, index: int, fetches: Any, initializer: Any, feeds: dict[Any, Any]
) -> WorkerProgram:
    """A synchronous worker that takes part from when it begins until it ends."""
    hook, coord = optimizer.make_session_run_hook(index == 0), tf.train.Coordinator()
    hook.begin()

    def end(session: Any) -> None:
        coord.request_stop()
        coord.join(stop_grace_period_secs=30.0, ignore_live_threads=True)

    return WorkerProgram(
        fetches,
        initializer,
        feeds,
        begin=lambda session: hook.after_create_session(session, coord),
        release=hook.end,
        end=end,
    )


def _waited_for(tf: Any, values: Any, wait: Callable[[], None]) -> Any:
    def waiting(batch: Any) -> Any:
        wait()
        return batch

    late = tf.py_func(waiting, [values], tf.float32)
    late.set_shape(values.shape)
    return late


def language_model(tf: Any, index: int, workers: int, servers: int, sampled: bool) -> WorkerProgram:
    """Trains an LSTM over 40,000 words; embedding and softmax lie in shards on all servers.

    The servers themselves multiply with their shards of the full softmax, and compute the gradients
    of these: only the outputs of the LSTM travel, and a sum for each word.
    """
    random = np.random.default_rng(index)
    place = tf.train.replica_device_setter(
        ps_tasks=servers, worker_device=f"/job:worker/task:{index}"
    )
    shard = WORDS // servers
    with tf.device(place):
        text = tf.placeholder(tf.int64, [SENTENCES, LENGTH + 1])
        uniform = tf.random_uniform_initializer(-0.05, 0.05, seed=1)
        with tf.variable_scope("model", initializer=uniform, use_resource=False):
            embedding = [tf.get_variable(f"e{k}", [shard, UNITS]) for k in range(servers)]
            weights = [tf.get_variable(f"w{k}", [shard, UNITS]) for k in range(servers)]
            kernel = tf.get_variable("kernel", [2 * UNITS, 4 * UNITS])
            bias = tf.get_variable("bias", [4 * UNITS])
        read = tf.nn.embedding_lookup(embedding, text[:, :-1], partition_strategy="div")
        outputs = _lstm(tf, read, kernel, bias)
        labels = tf.reshape(text[:, 1:], [-1])
        if sampled:
            none = [tf.zeros([shard]) for _ in range(servers)]
            losses = tf.nn.sampled_softmax_loss(
                weights, none, labels[:, None], outputs, SAMPLED, WORDS, partition_strategy="div"
            )
        else:
            losses = _sharded_softmax(tf, weights, outputs, labels)
        loss = tf.reduce_mean(losses)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
        initializer = tf.global_variables_initializer()
    # Zipf's law: word k comes 1/(k + 1) as often as the first.
    chances = 1 / np.arange(1, WORDS + 1)
    batch = random.choice(WORDS, (SENTENCES, LENGTH + 1), p=chances / chances.sum())
    return WorkerProgram([train, loss], initializer, {text: batch})


def _lstm(tf: Any, read: Any, kernel: Any, bias: Any) -> Any:
    state = output = tf.zeros([SENTENCES, UNITS])
    outputs = []
    for step in range(LENGTH):
        gates = tf.matmul(tf.concat([read[:, step], output], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, 1)
        state = state * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(state) * tf.sigmoid(o)
        outputs.append(output)
    return tf.reshape(tf.stack(outputs, 1), [-1, UNITS])


def _sharded_softmax(tf: Any, weights: list[Any], outputs: Any, labels: Any) -> Any:
    """The cross entropy of a softmax whose sums are made shard by shard, on the shards' tasks."""
    sums, right = [], []
    for number, part in enumerate(weights):
        with tf.device(part.device):
            shard = part.shape[0].value
            logits = tf.matmul(outputs, part, transpose_b=True)
            sums.append(tf.reduce_logsumexp(logits, 1))
            chosen = tf.one_hot(labels - number * shard, shard)
            right.append(tf.reduce_sum(logits * chosen, 1))
    return tf.reduce_logsumexp(tf.stack(sums), 0) - tf.add_n(right)


PROGRAMS: dict[str, Callable[..., WorkerProgram]] = {
    "null_step": null_step,
    "perceptron": perceptron,
    "language_model": language_model,
}
