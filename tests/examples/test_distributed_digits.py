"""The distributed digit classifier: four kinds of coordination, in threads and in processes."""

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
        checkpoint_dir=None,
        seed=0,
    )
    assert distributed_digits.run_here(2, settings) > 0.85
    printed = capsys.readouterr().out
    assert "worker 0: " in printed and "worker 1: " in printed and f"{coordination}: " in printed


def test_each_process_is_the_task_that_tf_config_names():
    cluster = cluster_of(ps=1, chief=1, worker=1)
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])
    command = [sys.executable, str(ROOT / "examples" / "distributed_digits.py")]
    command += ["--coordination", "sync", "--steps", "150", "--learning-rate", "0.01"]
    processes = {}
    try:
        for job in cluster:
            config = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
            processes[job] = subprocess.Popen(
                command,
                env={**os.environ, "TF_CONFIG": config, "PYTHONPATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        told = {job: processes[job].communicate(timeout=100)[0] for job in ("chief", "worker")}
        assert processes["chief"].returncode == 0, told["chief"]
        assert processes["worker"].returncode == 0, told["worker"]
        assert "step 150/150: loss" in told["chief"] and "accuracy: 0.9" in told["chief"]
        assert re.search(r"worker 1: 1\d\d steps", told["worker"])
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
