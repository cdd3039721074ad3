"""Threads of one process that train one table, while others look rows of it up."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads.cluster_training import BATCHES, MODELS, RATE, ROWS, batches

FEW = 4
"""The rows that someone who looks rows up asks for, again and again."""


def training(frontend: str, trainers: int, readers: int) -> Workload:
    """A step of each thread that trains; readers read until these have ended."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        feeds, loss = MODELS["embedding"](tf)
        table = tf.global_variables()[0]
        train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        few = tf.placeholder(tf.int64, [FEW])
        found = tf.nn.embedding_lookup(table, few)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        step = session.make_callable([loss, train], feeds)
        look = session.make_callable(found, [few])
    data = [batches("embedding", trainer) for trainer in range(trainers)]
    losses = [0.0] * trainers
    wanted = np.random.default_rng(0).integers(0, ROWS, FEW)

    def run(iterations: int) -> None:
        ended = threading.Event()

        def train_on(trainer: int) -> None:
            for number in range(iterations):
                losses[trainer] = float(step(*data[trainer][number % BATCHES])[0])

        def read() -> None:
            while not ended.is_set():
                look(wanted)

        training = [_started(lambda i=i: train_on(i)) for i in range(trainers)]
        reading = [_started(read) for _ in range(readers)]
        for thread in training:
            thread.join()
        ended.set()
        for thread in reading:
            thread.join()

    run(1)
    return Workload(run, facts=lambda: {"right": bool(np.isfinite(losses).all())})


def _started(function: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread
