"""An Estimator over the cluster of TF_CONFIG: which task it is, and a job of four processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack

import pytest

import runnel as tf

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}


def config_of(monkeypatch, task, cluster=None, **more):
    said = {"cluster": CLUSTER if cluster is None else cluster, **more}
    if task is not None:
        said["task"] = {"type": task[0], "index": task[1]}
    monkeypatch.setenv("TF_CONFIG", json.dumps(said))
    return tf.estimator.RunConfig()


@pytest.mark.parametrize(
    ("task", "is_chief", "master", "number"),
    [
        (("chief", 0), True, "grpc://a:1", 0),
        (("worker", 1), False, "grpc://c:1", 2),
        (("ps", 1), False, "grpc://e:1", 4),
    ],
)
def test_which_task_it_is(monkeypatch, task, is_chief, master, number):
    config = config_of(monkeypatch, task)
    assert (config.task_type, config.task_id) == task
    assert (config.is_chief, config.master) == (is_chief, master)
    assert config.global_id_in_cluster == number
    assert (config.num_ps_replicas, config.num_worker_replicas) == (2, 3)
    assert config.cluster_spec.as_dict() == CLUSTER
    assert config.replace(save_summary_steps=7).task_type == task[0]


def test_an_evaluator_is_beside_the_cluster(monkeypatch):
    config = config_of(monkeypatch, ("evaluator", 0))
    assert (config.task_type, config.is_chief, config.master) == ("evaluator", False, "")
    assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 0)
    assert config.global_id_in_cluster is None


def test_one_machine(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = tf.estimator.RunConfig(protocol="grpc", experimental_max_worker_delay_secs=3)
    assert (config.task_type, config.is_chief, config.master) == ("worker", True, "")
    assert not config.cluster_spec.jobs
    assert config.replace(tf_random_seed=1).experimental_max_worker_delay_secs == 3


@pytest.mark.parametrize(
    ("task", "cluster", "said"),
    [
        (("worker", 0), {"worker": ["a:1"]}, "exactly one chief"),
        (("chief", 0), {"chief": ["a:1", "b:1"]}, "exactly one chief"),
        (None, None, "which task"),
        (("cook", 0), None, "'cook'"),
        (("ps", 0), {}, "no cluster"),
    ],
)
def test_what_cannot_be(monkeypatch, task, cluster, said):
    with pytest.raises(ValueError, match=said):
        config_of(monkeypatch, task, cluster)


def test_two_folders(monkeypatch):
    assert config_of(monkeypatch, ("chief", 0), model_dir="/m").model_dir == "/m"
    with pytest.raises(ValueError, match="TF_CONFIG"):
        tf.estimator.RunConfig(model_dir="/other")


PROGRAM = """
import logging, sys
import numpy as np
import runnel as tf

xs = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
ys = xs @ np.float32([1.0, -2.0])

def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    if mode == "train" and sys.argv[2] != "local":
        assert w.device == "/job:ps/task:0", w.device
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(features * w, 1) - labels))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    return tf.data.Dataset.from_tensors((xs, ys)).repeat()

config = tf.estimator.RunConfig(
    sys.argv[1], save_checkpoints_steps=20, experimental_max_worker_delay_secs=0
)
found = tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(input_fn, max_steps=60),
    tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0, throttle_secs=0),
)
print(config.task_type, found[0])
"""


def free_ports(count):
    with ExitStack() as open_sockets:
        found = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in found]


def test_a_job_of_four_processes_trains_one_model(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(PROGRAM))
    ports = free_ports(3)
    cluster = {job: [f"localhost:{port}"] for job, port in zip(("ps", "chief", "worker"), ports)}
    tasks = {}
    try:
        for job in ("ps", "chief", "worker", "evaluator"):
            said = {"cluster": cluster, "task": {"type": job, "index": 0}}
            tasks[job] = subprocess.Popen(
                [sys.executable, str(script), str(tmp_path / "model"), job],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "TF_CONFIG": json.dumps(said)},
            )
        said = {job: tasks[job].communicate(timeout=90) for job in ("chief", "worker", "evaluator")}
        for job, (output, error) in said.items():
            assert tasks[job].returncode == 0, f"{job}: {error}"
            assert output.startswith(job)
        assert tasks["ps"].poll() is None  # it serves until it is ended
        tasks["ps"].send_signal(signal.SIGTERM)
    finally:
        for process in tasks.values():
            process.kill()
            process.communicate()
    latest = tf.train.latest_checkpoint(tmp_path / "model")
    assert int(tf.train.load_variable(latest, "global_step")) >= 60
    metrics = said["evaluator"][0]
    assert "'loss'" in metrics and "'global_step'" in metrics
    w = tf.train.load_variable(latest, "w")
    assert abs(w - [1.0, -2.0]).max() < 0.1
