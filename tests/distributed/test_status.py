"""What a task tells of itself, for people who watch it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.progress_record import VARIABLE, ProgressFile, ProgressRecord
from runnel.distributed.status import status_of
from tests.distributed.clusters import cluster_of, process, servers

pytestmark = pytest.mark.timeout(120)


def _of(server) -> dict:
    return json.loads(status_of(server))


def test_steps_parts_and_queues_are_counted():
    with servers(ps=1, worker=1) as tasks:
        with tf.device("/job:ps"):
            queue = tf.FIFOQueue(10, tf.int32, [()], name="tokens", shared_name="tokens")
            put = queue.enqueue(3)
        before = _of(tasks["worker0"])["steps_ended"]
        with tf.Session(tasks["worker0"].target) as sess:
            for _ in range(4):
                sess.run(put)
            assert _of(tasks["worker0"])["steps_ended"] - before == 4
            assert _of(tasks["ps0"])["parts_ended"] == 4
            assert _of(tasks["ps0"])["queues"] == [{"name": "tokens", "size": 4, "capacity": 10}]
            sess.run(queue.dequeue())
            assert _of(tasks["ps0"])["queues"][0]["size"] == 3
        assert _of(tasks["worker0"])["steps_ended"] - before == 5  # also of a closed session


@pytest.mark.parametrize("elements", [10, 1 << 18])
def test_bytes_that_travel_are_counted_on_both_sides(elements):
    """Through the socket, and through memory that both sides share."""
    spec = cluster_of(ps=1, worker=1)
    with process(spec, "ps", 0):
        worker = tf.train.Server(spec, "worker", 0)
        try:
            x = tf.placeholder(tf.float32, [elements])
            with tf.device("/job:ps"):
                y = x * 2.0
            with tf.Session(worker.target) as sess:
                np.testing.assert_array_equal(sess.run(y, {x: np.ones(elements)})[:2], [2.0, 2.0])
            [channel] = _of(worker)["connections"]
            least, slack = elements * 4, 10_000
            assert least <= channel["sent_bytes"] <= least + slack
            assert least <= channel["received_bytes"] <= least + slack
        finally:
            worker.stop()


def test_memory_and_progress_are_told(tmp_path, monkeypatch):
    server = tf.train.Server.create_local_server()
    try:
        assert _of(server)["progress"] is None
        file = ProgressFile(str(tmp_path / "progress"))
        file.write(ProgressRecord(True, 0, 1.0, 0, 1.0).after(7, 2.0))
        file.close()
        monkeypatch.setenv(VARIABLE, str(tmp_path / "progress"))
        found = _of(server)
        assert found["progress"] == {"step": 7, "runs": 1, "at": 2.0, "chief": True}
        assert 10 << 20 < found["memory_bytes"] < 1 << 40 or found["memory_bytes"] == 0
    finally:
        server.stop()
