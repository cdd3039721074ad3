"""Programs for clusters, with all tasks in one process and each in its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import distributed_digits
from tests.distributed.clusters import cluster_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("coordination", ["async", "sync", "backup", "bounded"])
def test_workers_in_threads_learn_the_digits(coordination, capsys):
    settings = distributed_digits.Settings(
        coordination,
        steps=120,
        batch_size=50,
        learning_rate=0.01,
        staleness=1,
    )
    assert distributed_digits.run_here(2, settings) > 0.85
    printed = capsys.readouterr().out
    assert "worker 0: " in printed and "worker 1: " in printed and f"{coordination}: " in printed


def run_tasks(cluster: dict[str, list[str]], *command: str) -> dict[str, str]:
    """What the tasks other than parameter servers print, each a process; all of them succeed."""
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])
    processes = {}
    try:
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
                processes[f"{job}{index}"] = subprocess.Popen(
                    [sys.executable, str(ROOT / "examples" / command[0]), *command[1:]],
                    env={**os.environ, "TF_CONFIG": config, "PYTHONPATH": path},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
        told = {
            task: process.communicate(timeout=100)[0]
            for task, process in processes.items()
            if not task.startswith("ps")
        }
        for task, text in told.items():
            assert processes[task].returncode == 0, text
        return told
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()


def test_each_process_is_the_task_that_tf_config_names():
    options = ["--coordination", "sync", "--steps", "150", "--learning-rate", "0.01"]
    told = run_tasks(cluster_of(ps=1, chief=1, worker=1), "distributed_digits.py", *options)
    assert "step 150/150: loss" in told["chief0"] and "accuracy: 0.9" in told["chief0"]
    assert re.search(r"worker 1: 1\d\d steps", told["worker0"])


def test_the_layers_of_a_model_lie_on_different_processes():
    told = run_tasks(cluster_of(worker=2), "model_parallel.py", "--steps", "10")
    layers = "10 steps with layers on /job:worker/task:0, /job:worker/task:1"
    assert layers in told["worker0"] and told["worker1"] == ""


@pytest.mark.parametrize("softmax", ["full", "sampled"])
def test_a_language_model_has_its_words_on_two_parameter_servers(softmax):
    options = ["--words", "--softmax", softmax, "--epochs", "1", "--hidden", "24"]
    options += ["--batch-size", "16", "--length", "32", "--sample-length", "3"]
    told = run_tasks(cluster_of(ps=2, worker=2), "language_model.py", *options)
    for text in told.values():
        assert "epoch 1/1: perplexity" in text and "words a second" in text
        found = re.search(r"validation perplexity: (\d+\.\d+)\s*$", text)
        assert found and float(found[1]) < 1542 / 2, text
