"""Clusters for tests: tasks of this process, or processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import runnel as tf
from runnel.distributed.client_calls import status

_TASK = """
import json, sys
import runnel as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
server = tf.train.Server(cluster, sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
server.join()
"""


def free_addresses(count: int) -> list[str]:
    """Addresses that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [f"localhost:{sock.getsockname()[1]}" for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def cluster_of(**jobs: int) -> dict[str, list[str]]:
    """A cluster with as many tasks of each job, as a dictionary."""
    free = iter(free_addresses(sum(jobs.values())))
    return {job: [next(free) for _ in range(count)] for job, count in jobs.items()}


@contextmanager
def servers(**jobs: int) -> Iterator[dict[str, Any]]:
    """Tasks of this process, by name such as ``ps0``."""
    spec = cluster_of(**jobs)
    found: dict[str, Any] = {}
    try:
        for job, addresses in spec.items():
            for index in range(len(addresses)):
                found[f"{job}{index}"] = tf.train.Server(spec, job, index)
        yield found
    finally:
        for server in found.values():
            server.stop()


class Process:
    """A task in a process of its own."""

    def __init__(
        self,
        spec: dict[str, Any],
        job: str,
        index: int,
        before: Sequence[str] = (),
        program: str = _TASK,
        **environment: str,
    ) -> None:
        """``before`` is a command that starts it; ``program`` says when it is ready."""
        self._process = subprocess.Popen(
            [*before, sys.executable, "-c", program, json.dumps(spec), job, str(index)],
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> None:
        """Sends a signal; a process that is to stop has stopped afterwards."""
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def wait(self, seconds: float = 60) -> int:
        """The status with which it ends by itself."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """Ends it, and waits for that."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
            self._process.stdout = None


@contextmanager
def process(spec: dict[str, Any], job: str, index: int, **environment: str) -> Iterator[Process]:
    task = Process(spec, job, index, **environment)
    try:
        yield task
    finally:
        task.kill()


def raised_by(function: Any) -> tuple[threading.Thread, list[BaseException]]:
    """What a thread that calls ``function`` meets."""
    found: list[BaseException] = []

    def call() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 (looked at)
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    return thread, found


def await_status(address: str, happened: Callable[[dict[str, Any]], bool]) -> None:
    """Waits until ``happened`` is true of the status of a task, which is asked again and again."""
    waiting = threading.Event()
    for _ in range(1500):
        if happened(json.loads(status(address))):
            return
        waiting.wait(0.02)
    raise AssertionError(status(address))
