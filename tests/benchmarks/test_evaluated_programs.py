"""The programs of the evaluation run on a cluster, and compute what they should."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from benchmarks.workloads import evaluated_programs as programs
from benchmarks.workloads.evaluated_programs import language_model, null_step, perceptron
from tests.distributed.clusters import servers

WORKERS = 3


def run_all(cluster, describe, steps):
    """Runs a program on every worker, each in a thread; returns what the last steps fetched."""
    sessions, described = [], []
    for index in range(WORKERS):
        with tf.Graph().as_default():
            program = describe(index)
            session = tf.Session(cluster[f"worker{index}"].target)
            if index == 0:
                session.run(program.initializer)
            program.begin(session)
            sessions.append(session)
            described.append(program)
    found = [None] * WORKERS

    def work(index):
        for _ in range(steps):
            found[index] = sessions[index].run(described[index].fetches, described[index].feeds)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads), "workers wait for each other"
    return found


def test_workers_of_null_steps_wait_for_each_other_and_never_for_ever():
    with servers(ps=2, worker=WORKERS) as cluster:
        found = run_all(cluster, lambda i: null_step(tf, i, WORKERS, 2, "sparse", 0.1), 150)
    for fetched in found:
        assert fetched[0] == [2.0]  # a one from each server


def test_synchronous_training_makes_an_update_of_all_workers_gradients():
    def describe(index):
        return perceptron(tf, index, WORKERS, 2, aggregated=WORKERS)

    with servers(ps=2, worker=WORKERS) as cluster:
        found = run_all(cluster, describe, 8)
    # A token may be another worker's, but there is one for each gradient.
    assert max(step for _, _, step in found) >= 7


def test_a_table_in_place_of_tokens_has_every_worker_in_every_update():
    ends = []

    def describe(index):
        program = perceptron(tf, index, WORKERS, 2, aggregated=WORKERS, elastic=True)
        ends.append(program)
        return program

    with servers(ps=2, worker=WORKERS) as cluster:
        found = run_all(cluster, describe, 8)
        for program in ends:
            program.end(None)
    # Each has given for each update; what it fetches may be from before or after the last.
    assert {step for _, _, step in found} <= {7, 8}


def test_a_softmax_in_shards_is_the_softmax(monkeypatch):
    monkeypatch.setattr(programs, "WORDS", 40)
    weights = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    outputs = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32)
    labels = np.array([0, 19, 20, 39, 7])
    with tf.Graph().as_default(), tf.Session() as session:
        shards = [tf.Variable(weights[:20]), tf.Variable(weights[20:])]
        losses = programs._sharded_softmax(tf, shards, tf.constant(outputs), tf.constant(labels))
        session.run(tf.global_variables_initializer())
        found = session.run(losses)
    logits = outputs @ weights.T
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(5), labels]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_language_model_over_sharded_words_learns(monkeypatch, sampled):
    for name, value in (("WORDS", 200), ("UNITS", 8), ("LENGTH", 3), ("SAMPLED", 20)):
        monkeypatch.setattr(programs, name, value)
    with servers(ps=2, worker=1) as cluster, tf.Graph().as_default():
        program = language_model(tf, 0, 1, 2, sampled)
        with tf.Session(cluster["worker0"].target) as session:
            session.run(program.initializer)
            # What is sampled is other words each time: it takes longer to show.
            steps = 400 if sampled else 40
            losses = [session.run(program.fetches, program.feeds)[1] for _ in range(steps)]
    part = steps // 8
    assert np.mean(losses[-part:]) < np.mean(losses[:part])
