"""Train a digit classifier on several workers, coordinated in one of four ways.

    python examples/distributed_digits.py --coordination backup
    runnel up --ps 1 --workers 4 examples/distributed_digits.py --coordination bounded

Each worker builds the same graph; the variables lie on parameter servers. `TF_CONFIG` says which
task of which cluster a process is. Without it the program is a small cluster of its own: a
parameter server and some workers, in threads. docs/guide/coordination.md explains the four ways.
"""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

import runnel as tf
from runnel.datasets import digits

HIDDEN_UNITS = 64
NUM_CLASSES = 10
REPORTS = 5
# What a network of this size should reach on the digits; less means that something is broken.
REQUIRED_ACCURACY = 0.9


@dataclass(frozen=True)
class Task:
    """Which part of a job this process, or thread, is."""

    cluster: dict[str, Any]
    job: str
    index: int

    @property
    def workers(self) -> list[tuple[str, int]]:
        """The tasks that train, the chief first."""
        jobs = [job for job in ("chief", "worker") if job in self.cluster]
        return [(job, index) for job in jobs for index in range(len(self.cluster[job]))]

    @property
    def rank(self) -> int:
        """The how many-th worker it is; the first is the chief."""
        return self.workers.index((self.job, self.index))


class Settings(NamedTuple):
    """What the options say."""

    coordination: str
    steps: int
    batch_size: int
    learning_rate: float
    staleness: int = 2
    checkpoint_dir: str | None = None
    save_seconds: float = 60.0
    delay: float = 0.0
    filters: bool = True
    seed: int = 0


class Model(NamedTuple):
    """The ends of the graph that a training loop takes hold of."""

    images: Any
    labels: Any
    step: Any
    loss: Any
    accuracy: Any
    optimizer: Any
    train_op: Any
    dropped: Any


def network(images: Any, labels: Any) -> tuple[Any, Any]:
    """The loss and the accuracy of a network with one hidden layer."""
    hidden = tf.layers.dense(images, HIDDEN_UNITS, tf.nn.relu)
    logits = tf.layers.dense(hidden, NUM_CLASSES)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    correct = tf.equal(tf.argmax(logits, 1), labels)
    return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(correct, tf.float32))


def coordinated(optimizer: Any, rank: int, workers: int, settings: Settings) -> Any:
    """The optimizer that trains together with the other workers."""
    if settings.coordination == "async":
        return optimizer
    if settings.coordination == "bounded":
        return tf.train.BoundedStalenessOptimizer(
            optimizer, settings.staleness, worker_index=rank, num_workers=workers
        )
    needed = max(1, workers - 1) if settings.coordination == "backup" else workers
    return tf.train.SyncReplicasOptimizer(
        optimizer,
        replicas_to_aggregate=needed,
        total_num_replicas=workers,
        worker_index=rank,  # so that updates are made of fewer gradients where workers are gone
    )


def hooks_of(optimizer: Any, is_chief: bool) -> list[Any]:
    """What a coordinated optimizer needs around the steps of a session."""
    if isinstance(optimizer, tf.train.SyncReplicasOptimizer):
        return [optimizer.make_session_run_hook(is_chief)]
    if isinstance(optimizer, tf.train.BoundedStalenessOptimizer):
        return [optimizer.make_session_run_hook()]
    return []


def delayed(images: Any, seconds: float) -> Any:
    """``images``, after a while: the variables have been read, and are updated later."""

    def wait(batch: Any) -> Any:
        threading.Event().wait(seconds)  # in place of a larger model
        return batch

    late = tf.py_func(wait, [images], tf.float32)
    late.set_shape(images.shape)
    return late


def build(task: Task, rank: int, settings: Settings) -> Model:
    """The graph of a worker: variables on the parameter servers, the rest on its own task."""
    here = f"/job:{task.job}/task:{task.index}"
    with tf.device(tf.train.replica_device_setter(worker_device=here, cluster=task.cluster)):
        tf.set_random_seed(settings.seed)
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, digits.IMAGE_SIZE**2], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        seen = delayed(images, settings.delay) if settings.delay else images
        loss, accuracy = network(seen, labels)
        adam = tf.train.AdamOptimizer(settings.learning_rate)
        optimizer = coordinated(adam, rank, len(task.workers), settings)
        train_op = optimizer.minimize(loss, global_step=step)
        dropped = tf.constant(0) if optimizer is adam else optimizer.num_dropped()
    return Model(images, labels, step, loss, accuracy, optimizer, train_op, dropped)


def train(task: Task, target: str, settings: Settings, more_hooks: Sequence[Any] = ()) -> float:
    """Trains as one worker; the chief returns the accuracy on digits that nobody trained with."""
    is_chief = task.rank == 0
    data = digits.read_data_sets(one_hot=False, seed=settings.seed + task.rank)
    with tf.Graph().as_default():
        model = build(task, task.rank, settings)
        hooks = hooks_of(model.optimizer, is_chief)
        hooks += [tf.train.StopAtStepHook(last_step=settings.steps), *more_hooks]
        # A worker needs the parameter servers only: with filters it begins before others are there.
        needed = ["/job:ps", f"/job:{task.job}/task:{task.index}"] if settings.filters else []
        with tf.train.MonitoredTrainingSession(
            target,
            is_chief,
            checkpoint_dir=settings.checkpoint_dir,
            hooks=hooks,
            config=tf.ConfigProto(device_filters=needed),
            save_checkpoint_secs=settings.save_seconds,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            own, reported, number = 0, 0, 0
            start = time.perf_counter()
            while not session.should_stop():
                images, labels = data.train.next_batch(settings.batch_size)
                feed = {model.images: images, model.labels: labels}
                value, number, _ = session.run([model.loss, model.step, model.train_op], feed)
                own += 1
                if is_chief and number * REPORTS // settings.steps > reported:
                    reported = number * REPORTS // settings.steps
                    print(f"step {number}/{settings.steps}: loss {value:.4f}", flush=True)
            seconds = time.perf_counter() - start
            print(f"worker {task.rank}: {own} steps in {seconds:.1f} s", flush=True)
            if not is_chief:
                return 1.0
            test = {model.images: data.test.images, model.labels: data.test.labels}
            late, found = session.raw_session().run([model.dropped, model.accuracy], test)
    print(f"{settings.coordination}: {late} steps came too late and were dropped")
    print(f"held-out accuracy: {found:.4f}", flush=True)
    return float(found)


def run_task(task: Task, settings: Settings) -> float:
    """Is the task that this process was told to be."""
    server = tf.train.Server(task.cluster, task.job, task.index)
    if task.job == "ps":
        server.join()
        return 1.0
    try:
        return train(task, server.target, settings)
    finally:
        server.stop()


def run_here(workers: int, settings: Settings) -> float:
    """Is a whole cluster: a parameter server and workers, each in a thread."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(workers + 1)]
    addresses = [f"localhost:{sock.getsockname()[1]}" for sock in sockets]
    for sock in sockets:
        sock.close()
    cluster = {"ps": addresses[:1], "worker": addresses[1:]}
    tasks = [Task(cluster, "worker", index) for index in range(workers)]
    servers = [tf.train.Server(cluster, "ps", 0)]
    servers += [tf.train.Server(cluster, task.job, task.index) for task in tasks]
    found = [0.0] * workers

    def work(task: Task) -> None:
        found[task.rank] = train(task, servers[1 + task.index].target, settings)

    threads = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.stop()
    return min(found)


@click.command()
@click.option(
    "--coordination",
    type=click.Choice(["async", "sync", "backup", "bounded"]),
    default="async",
    show_default=True,
)
@click.option("--steps", type=click.IntRange(min=1), default=400, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--learning-rate", type=float, default=0.005, show_default=True)
@click.option("--staleness", type=click.IntRange(min=0), default=2, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--checkpoint-dir", type=click.Path(), help="Save there, and go on from there.")
@click.option("--save-seconds", type=float, default=60.0, show_default=True, help="How often.")
@click.option("--delay", type=float, default=0.0, help="Seconds that a step takes longer.")
@click.option("--filters/--no-filters", default=True, help="Begin before other workers are there.")
@click.option("--seed", type=int, default=0, show_default=True)
def main(workers: int, **options: Any) -> None:
    """Train a digit classifier on several workers (--workers: without a TF_CONFIG)."""
    settings = Settings(**options)
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    if "cluster" in config:
        own = config["task"]
        accuracy = run_task(Task(config["cluster"], own["type"], int(own["index"])), settings)
    else:
        accuracy = run_here(workers, settings)
    if accuracy < REQUIRED_ACCURACY:
        print(
            f"error: the accuracy is below {REQUIRED_ACCURACY}, which {settings.steps} steps "
            "should reach; try more --steps or another --learning-rate",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
