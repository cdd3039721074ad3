"""A slow reader bounds the memory of who sends to it, over sockets and through shared memory.

The sender and its reader are processes of their own. What is measured is what the system says that
the sender's process has in memory.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import runnel as tf
from runnel.distributed import step_parts
from runnel.distributed.client_calls import status
from runnel.distributed.transport.backlog import MOST_WAITING
from tests.distributed.clusters import Process, await_status, cluster_of

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="stops processes"),
]

_TASK = """
import json, sys
import runnel as tf
from runnel import memory
memory.IDLE_SECONDS = 1.0
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
server.join()
"""
MEGABYTES = 8
"""Of each value that is sent."""
ELEMENTS = MEGABYTES << 18
CALLERS = 6
LIMIT = (2 * MOST_WAITING >> 20) + CALLERS * 3 * MEGABYTES + 60
"""What the sender may take for what the reader does not: twice what may wait (once on its way to a
thread, once in shared memory), what running steps have, and something for the allocator."""


@dataclass
class Sent:
    """A cluster whose task ``ps`` sends values to its task ``reader``."""

    reader: Process
    address: str
    session: tf.Session
    number: Any
    received: Any
    """The sum of what came, made of ``number``."""

    def run(self, number: float, **options: int) -> float:
        run_options = tf.RunOptions(**options) if options else None
        return self.session.run(self.received, {self.number: number}, run_options)

    def megabytes(self) -> int:
        """What the sender's process has in memory."""
        return json.loads(status(self.address))["memory_bytes"] >> 20


@pytest.fixture(params=["shared memory", "tcp"])
def transport(request, monkeypatch) -> None:
    if request.param == "tcp":
        monkeypatch.setenv("RUNNEL_TRANSPORT", "tcp")


@contextmanager
def sending() -> Iterator[Sent]:
    spec = cluster_of(ps=1, reader=1, worker=1)
    number = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        large = tf.fill([ELEMENTS], number)
    with tf.device("/job:reader/task:0"):
        received = tf.reduce_sum(large[:: ELEMENTS // 8])
    sender = Process(spec, "ps", 0, program=_TASK)
    reader = Process(spec, "reader", 0, program=_TASK)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        options = tf.OptimizerOptions(global_jit_level=tf.OptimizerOptions.OFF)
        graph_options = tf.GraphOptions(optimizer_options=options)  # XLA takes memory, too
        config = tf.ConfigProto(graph_options=graph_options)
        with tf.Session(worker.target, config=config) as sess:
            found = Sent(reader, spec["ps"][0], sess, number, received)
            for value in range(5):
                assert found.run(value) == 8 * value
            yield found
    finally:
        worker.stop()
        reader.kill()
        sender.kill()


def by_callers(call: Callable[[int], Any]) -> list[Any]:
    """What ``call`` gives or raises for each of the threads that call it at once."""
    with ThreadPoolExecutor(CALLERS) as pool:
        made = [pool.submit(call, number) for number in range(CALLERS)]
        return [future.exception() or future.result() for future in made]


def test_steps_that_are_given_up_leave_nothing_with_who_sends_to_a_stopped_reader(
    transport, monkeypatch
):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "40")  # it is not lost meanwhile
    monkeypatch.setattr(step_parts, "_GRACE_SECONDS", 0.05)
    with sending() as sent:
        before = sent.megabytes()
        sent.reader.signal(signal.SIGSTOP)
        most = [0]

        def give_up(number: int) -> None:
            for _ in range(25):
                with pytest.raises(tf.errors.DeadlineExceededError):
                    sent.run(number, timeout_in_ms=100)
                most.append(sent.megabytes() - before)

        assert by_callers(give_up) == [None] * CALLERS
        assert max(most) < LIMIT < CALLERS * 25 * MEGABYTES
        sent.reader.signal(signal.SIGCONT)
        assert sent.run(2.0) == 16.0
        await_status(sent.address, lambda told: (told["memory_bytes"] >> 20) < before + 100)


def test_what_a_stopped_reader_has_not_taken_comes_when_it_goes_on(transport, monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "40")
    with sending() as sent:
        before = sent.megabytes()
        most = [0]
        sent.reader.signal(signal.SIGSTOP)
        ended = threading.Event()

        def go_on_and_stop() -> None:
            pause = threading.Event()
            while not ended.is_set():
                most.append(sent.megabytes() - before)
                sent.reader.signal(signal.SIGCONT)
                pause.wait(0.05)
                sent.reader.signal(signal.SIGSTOP)
            sent.reader.signal(signal.SIGCONT)

        def ask(number: int) -> list[float]:
            return [sent.run(number + value) for value in range(20)]

        slow = threading.Thread(target=go_on_and_stop)
        slow.start()
        try:
            found = by_callers(ask)
        finally:
            ended.set()
            slow.join()
        assert found == [[8.0 * (n + value) for value in range(20)] for n in range(CALLERS)]
        assert max(most) < LIMIT


def test_steps_that_send_to_a_stopped_reader_fail_and_name_it(transport, monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "3")
    with sending() as sent:
        before = sent.megabytes()
        sent.reader.signal(signal.SIGSTOP)
        for found in by_callers(sent.run):
            assert isinstance(found, tf.errors.UnavailableError), found
            assert "/job:reader" in str(found) and found.op is not None
        await_status(sent.address, lambda told: (told["memory_bytes"] >> 20) < before + 100)
