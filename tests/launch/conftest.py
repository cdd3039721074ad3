"""Jobs for tests: a script, and the command that runs it on tasks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TRAINING = """
import json, os, sys, threading
import runnel as tf

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
print(f"pid {os.getpid()}", flush=True)
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, task["type"], task["index"])
if task["type"] == "ps":
    server.join()
worker = f"/job:worker/task:{task['index']}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
    step = tf.train.get_or_create_global_step()
    # What training does: it is right only if every step counts once.
    work = tf.get_variable("work", [], tf.float64, initializer=tf.zeros_initializer())
    train = [step.assign_add(1), work.assign_add(1.0)]
folder, last, go_on = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with tf.train.MonitoredTrainingSession(
    server.target,
    is_chief=task["index"] == 0,
    checkpoint_dir=folder,
    save_checkpoint_secs=None,
    save_checkpoint_steps=10,
    save_summaries_steps=None,
    log_step_count_steps=None,
    hooks=[tf.train.StopAtStepHook(last_step=last)],
) as sess:
    while not sess.should_stop():
        number, value = sess.run(train)
        print(f"step {number} work {value:g}", flush=True)
        threading.Event().wait(0.02)  # steps do not follow faster than others can be killed
        while number > last - 20 and not os.path.exists(go_on):  # until all are back
            threading.Event().wait(0.02)
"""
"""A job that trains until a step, and does not finish before a file is there."""

ROOT = Path(__file__).parent.parent.parent


class RunningJob:
    """``runnel up``, running; its lines can be waited for."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runnel", "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._reader_done = True
            self._changed.notify_all()

    _reader_done = False

    def wait_for(self, pattern: str, count: int = 1, seconds: float = 60) -> list[re.Match[str]]:
        """The first ``count`` lines that match; an error when they do not come."""

        def found() -> list[re.Match[str]]:
            matches = (re.search(pattern, line) for line in self.lines)
            return [match for match in matches if match]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count or self._reader_done, seconds)
            assert len(found()) >= count, f"{pattern} did not come in\n" + "\n".join(self.lines)
            return found()

    def ended(self, seconds: float = 60) -> int:
        """The status, when all has been written."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("it did not end\n" + "\n".join(self.lines)) from None
        self._reader.join(seconds)
        return status

    def text(self) -> str:
        return "\n".join(self.lines)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()


@pytest.fixture
def up(tmp_path, monkeypatch) -> Iterator[Callable[..., RunningJob]]:
    """Starts ``runnel up``; what still runs is killed, and nothing may be left of it."""
    # The launcher's folder is then the test's, and is gone with it.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("TF_CONFIG", raising=False)
    jobs: list[RunningJob] = []

    def start(*arguments: Any, **environment: str) -> RunningJob:
        jobs.append(RunningJob(*map(str, arguments), **environment))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


def is_alive(pid: int) -> bool:
    """Whether a process is there, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether something comes to hold that nobody tells of."""
    asked = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return True
        asked.wait(0.02)
    return holds()
