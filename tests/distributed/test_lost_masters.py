"""Clients whose master goes, and masters whose client goes."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

import runnel as tf
from tests.distributed.clusters import await_status, cluster_of, process, raised_by

pytestmark = pytest.mark.timeout(120)


def has_steps(status: dict) -> bool:
    return any(master["steps"] for master in status["masters"])


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
@pytest.mark.parametrize("runs_already", [True, False])
def test_a_client_of_a_stopped_master_gets_an_error_after_the_deadline(monkeypatch, runs_already):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "3")
    spec = cluster_of(ps=1)
    [address] = spec["ps"]
    with process(spec, "ps", 0) as task, tf.Session(f"grpc://{address}") as sess:
        never = tf.FIFOQueue(1, tf.float32, [()]).dequeue()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(never, options=tf.RunOptions(timeout_in_ms=1))
        if not runs_already:
            task.signal(signal.SIGSTOP)
        thread, found = raised_by(lambda: sess.run(never))
        if runs_already:
            await_status(address, has_steps)
            task.signal(signal.SIGSTOP)
        thread.join(9)  # with the deadline of other sessions it would be ten
        assert isinstance(found[0], tf.errors.UnavailableError)
        assert address in str(found[0])
        task.kill()  # before the session is closed, which would wait for it


_HANDLES = """
import json, os, signal, sys
import runnel as tf
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
server.join()
"""


def test_a_server_that_is_joined_lets_running_steps_end_when_it_is_told_to():
    spec = cluster_of(ps=1)
    [address] = spec["ps"]
    with process(spec, "ps", 0) as task, tf.Session(f"grpc://{address}") as sess:
        queue = tf.FIFOQueue(1, tf.int32, [()])
        element, put = queue.dequeue(), queue.enqueue(7)
        found: list = []
        step = threading.Thread(target=lambda: found.append(sess.run(element)))
        step.start()
        await_status(address, has_steps)
        task.signal(signal.SIGTERM)
        sess.run(put)  # a session that is there goes on
        step.join(60)
        assert found == [7]
        assert task.wait() == 0


def test_a_program_that_handles_the_signal_itself_does():
    with process(cluster_of(ps=1), "ps", 0, program=_HANDLES) as task:
        task.signal(signal.SIGTERM)
        assert task.wait() == 7
