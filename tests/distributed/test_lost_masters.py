"""Clients whose master goes, and masters whose client goes."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import runnel as tf
from runnel.distributed import client_calls
from runnel.distributed.client_calls import status
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.remote import RemoteBackend
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


# Every kind of call -----------------------------------------------------------------------------


def calls_of(target: str) -> dict[str, Callable[[], Any]]:
    """One call of each kind, those of a session each on one that is made now."""
    graph = tf.get_default_graph()
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.multiply(x, 2.0, name="y")
    z = tf.add(y, 1.0, name="z")
    config = tf.ConfigProto()

    def session() -> tf.Session:
        sess = tf.Session(target, graph, config)
        assert sess.run(y, {x: 1.0}) == 2.0
        return sess

    def extends(sess: tf.Session) -> None:
        with tf.Graph().as_default() as larger:
            tf.import_graph_def(graph.as_graph_def(), name="")
            sess._backend._graph = larger
            tf.constant(1.0)
            sess._backend._extend()

    def releases(sess: tf.Session) -> None:
        request = messages.ReleaseCallableRequest(session=sess._backend.session, callable=1)
        sess._backend.call("ReleaseCallable", request)

    whole, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
    known: dict[str, Callable[[tf.Session], Any]] = {
        "RunCallable": lambda sess: sess.run(y, {x: 1.0}),
        "MakeCallable": lambda sess: sess.run(z, {x: 1.0}),
        "PartitionGraphs": lambda sess: sess.run(y, {x: 1.0}, whole, metadata),
        "PartialRunSetup": lambda sess: sess.partial_run_setup([y], [x]),
        "ListDevices": lambda sess: sess.list_devices(),
        "ExtendSession": extends,
        "ReleaseCallable": releases,
    }
    found = {name: partial(call, session()) for name, call in known.items()}
    sess = session()
    handle = sess.partial_run_setup([y], [x])
    found["Run"] = lambda: sess.partial_run(handle, y, {x: 1.0})
    found["CreateSession"] = lambda: tf.Session(target, graph, config)
    found["Reset"] = lambda: tf.Session.reset(target)
    found["Status"] = lambda: status(target.removeprefix("grpc://"))
    assert {*found, "CloseSession"} == set(client_calls._REPLIES)  # closing tells no error
    return found


def outcomes(calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """What the calls, all made at once, give or raise; none of them may hang."""
    with ThreadPoolExecutor(len(calls)) as pool:
        made = {name: pool.submit(call) for name, call in calls.items()}
        return {name: future.exception(60) or future.result() for name, future in made.items()}


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_every_call_to_a_master_that_is_gone_fails_and_names_it(monkeypatch, how):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "3")
    monkeypatch.setattr(client_calls, "_CONNECT_SECONDS", 3.0)  # one that starts is waited for
    spec = cluster_of(ps=1)
    [address] = spec["ps"]
    with process(spec, "ps", 0) as task:
        calls = calls_of(f"grpc://{address}")
        left_over = tf.Session(f"grpc://{address}")
        task.signal(how)
        if how == signal.SIGKILL:
            task.wait()
        for name, found in outcomes(calls).items():
            expected = tf.errors.UnavailableError, tf.errors.DeadlineExceededError
            assert isinstance(found, expected), (name, found)
            assert address in str(found) and ("lost" in str(found) or "answer" in str(found)), name
        # Also when it is known that nobody is there: a second call of each kind.
        assert all(isinstance(e, tf.errors.OpError) for e in outcomes(calls).values())
        left_over.close()


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
def test_the_limit_of_a_session_is_that_of_each_of_its_calls(monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "60")  # nobody else would end them
    monkeypatch.setattr(client_calls, "_SAYING_SECONDS", 0.5)
    monkeypatch.setattr(tf, "ConfigProto", partial(tf.ConfigProto, operation_timeout_in_ms=3000))
    spec = cluster_of(ps=1)
    with process(spec, "ps", 0) as task:
        calls = calls_of(f"grpc://{spec['ps'][0]}")
        del calls["Reset"]  # has no configuration
        task.signal(signal.SIGSTOP)
        for name, found in outcomes(calls).items():
            expected = tf.errors.DeadlineExceededError, tf.errors.UnavailableError
            assert isinstance(found, expected), (name, found)
            assert spec["ps"][0] in str(found) and "answer" in str(found), name
        task.kill()


def test_the_deadline_of_a_step_holds_though_its_master_does_not_move(monkeypatch):
    monkeypatch.setattr(client_calls, "_SAYING_SECONDS", 0.2)
    spec = cluster_of(ps=1)
    with process(spec, "ps", 0) as task:
        sess = tf.Session(f"grpc://{spec['ps'][0]}")
        x = tf.constant(1.0) + 1.0
        assert sess.run(x) == 2.0
        task.signal(signal.SIGSTOP)
        with pytest.raises(tf.errors.DeadlineExceededError, match="has not answered RunCallable"):
            sess.run(x, options=tf.RunOptions(timeout_in_ms=300))
        task.kill()
        sess.close()


@pytest.mark.parametrize("hangs_up", [True, False])
def test_something_else_that_listens_there_is_no_task(monkeypatch, hangs_up):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "1.5")
    kept: list[socket.socket] = []

    def accept(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.append(listening.accept()[0])
                if hangs_up:
                    kept.pop().close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept, args=(listening,))
        thread.start()
        address = f"localhost:{listening.getsockname()[1]}"
        calls: dict[str, Callable[[], Any]] = {
            "CreateSession": lambda: tf.Session(f"grpc://{address}"),
            "Reset": lambda: tf.Session.reset(f"grpc://{address}"),
            "Status": lambda: status(address),
        }
        found = outcomes(calls)
        for name, error in found.items():
            assert isinstance(error, tf.errors.UnavailableError), (name, error)
            assert address in str(error), name
        assert "no task" in str(found["CreateSession"])
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for sock in kept:
        sock.close()


def test_a_master_that_starts_a_little_later_is_waited_for():
    spec = cluster_of(ps=1)
    started: list[Any] = []
    waiting = threading.Timer(0.7, lambda: started.append(tf.train.Server(spec, "ps", 0)))
    waiting.start()
    try:
        backend = RemoteBackend(spec["ps"][0], tf.get_default_graph(), None)
        assert len(backend.list_devices()) == 1
        backend.close()
    finally:
        waiting.join()
        started[0].stop()
