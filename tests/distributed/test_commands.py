"""``runnel server`` and ``runnel cluster status``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

import runnel as tf
from runnel.command_line import main
from tests.distributed.clusters import cluster_of, process, raised_by

pytestmark = pytest.mark.timeout(120)


@contextmanager
def command(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "runnel", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_server_is_seen_waiting_and_lets_running_steps_end_when_it_is_told_to(tmp_path):
    spec = cluster_of(ps=1)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(spec))
    arguments = ["--cluster", str(file), "--job", "ps", "--task", "0"]
    with command("server", *arguments) as process:
        assert process.stdout is not None
        assert "/job:ps/replica:0/task:0 is at" in process.stdout.readline()
        queue = tf.FIFOQueue(1, tf.int32, [()])
        element = queue.dequeue(name="the_element")  # what it waits for
        put = queue.enqueue(7)
        found: list[Any] = []
        with tf.Session(f"grpc://{spec['ps'][0]}") as sess:
            step = threading.Thread(target=lambda: found.append(sess.run(element)))
            step.start()
            shown = _status_with("the_element", file)
            assert "FIFOQueue" in shown or "QueueDequeue" in shown
            assert "1 sessions" in shown
            process.send_signal(signal.SIGTERM)
            assert "is ending" in process.stdout.readline()
            sess.run(put)  # a session that is there goes on
            step.join(30)
        assert found == [7]
        assert process.wait(30) == 0


def _status_with(text: str, file: Any) -> str:
    waiting = threading.Event()
    for _ in range(300):
        result = CliRunner().invoke(main, ["cluster", "status", "--cluster", str(file)])
        if text in result.output:
            return result.output
        waiting.wait(0.05)
    raise AssertionError(result.output)


def test_status_as_json_names_a_task_that_does_not_answer():
    [address] = cluster_of(ps=1)["ps"]
    result = CliRunner().invoke(main, ["cluster", "status", "--json", address])
    assert result.exit_code == 1
    assert json.loads(result.output)[0]["address"] == address


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
def test_status_tells_since_when_and_who_does_not_answer(tmp_path):
    spec = cluster_of(ps=2)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(spec))
    arguments = ["cluster", "status", "--cluster", str(file), "--json", "--patience", "3"]
    with process(spec, "ps", 0), process(spec, "ps", 1) as stopped:
        with tf.device("/job:ps/task:0"):
            element = tf.FIFOQueue(1, tf.int32, [()]).dequeue(name="the_element")  # its line
        config = tf.ConfigProto(device_filters=["/job:ps/task:0"])
        sess = tf.Session(f"grpc://{spec['ps'][0]}", config=config)
        thread, _ = raised_by(lambda: sess.run(element))
        _status_with("the_element", file)
        stopped.signal(signal.SIGSTOP)
        result = CliRunner().invoke(main, arguments)
        here, silent = json.loads(result.output)
        assert result.exit_code == 1
        assert silent["task"] == "/job:ps/replica:0/task:1" and "not answer" in silent["error"]
        assert here["task"] == "/job:ps/replica:0/task:0" and int(here["incarnation"], 16)
        [master] = here["masters"]
        [step] = master["steps"]
        [waits] = step["waits_for"]
        assert waits["op"] == "the_element" and "# its line" in waits["line"]
        assert 0 < waits["seconds"] <= step["seconds"]
        sess.close()
        thread.join(60)


def test_a_server_is_what_tf_config_says():
    spec = cluster_of(worker=1)
    config = json.dumps({"cluster": spec, "task": {"type": "worker", "index": 0}})
    with command("server", TF_CONFIG=config) as process:
        assert process.stdout is not None
        assert "/job:worker/replica:0/task:0" in process.stdout.readline()
        with tf.Session(f"grpc://{spec['worker'][0]}") as sess:
            assert sess.run(tf.constant(3)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--job", "ps"], "--cluster is missing"),
        (["--cluster", '{"ps": ["localhost:0"]}', "--job", "worker"], "No such job"),
        (["--cluster", "{broken", "--job", "ps"], "cannot be read"),
        (["--cluster", '{"ps": ["localhost:0"]}'], "--job is missing"),
    ],
)
def test_mistakes_are_told(arguments, message, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    result = CliRunner().invoke(main, ["server", *arguments])
    assert result.exit_code != 0 and message in result.output
