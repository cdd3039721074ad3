"""Tokens and TLS: tasks that do not belong together do not talk."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import deque
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.security import Security
from runnel.distributed.transport.frame import MAGIC
from runnel.distributed.transport.stream import TlsStream
from runnel.runtime.state.in_thread import in_thread
from tests.distributed.clusters import cluster_of, process

pytestmark = pytest.mark.timeout(120)


def double_on_ps() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        return x, x * 2


def test_a_task_with_another_token_is_refused(monkeypatch):
    spec = cluster_of(ps=1, worker=1)
    x, y = double_on_ps()
    with process(spec, "ps", 0, RUNNEL_CLUSTER_TOKEN="right"):
        for token, error in (("wrong", "token"), ("", "token"), ("right", None)):
            monkeypatch.setenv("RUNNEL_CLUSTER_TOKEN", token)
            worker = tf.train.Server(spec, "worker", 0)
            try:
                if error is None:
                    with tf.Session(worker.target) as sess:
                        np.testing.assert_array_equal(sess.run(y, {x: [1.0]}), [2.0])
                else:
                    with pytest.raises(tf.errors.UnauthenticatedError, match=error):
                        tf.Session(worker.target)
            finally:
                worker.stop()


def test_a_client_with_another_token_is_refused(monkeypatch):
    spec = cluster_of(ps=1)
    x, y = double_on_ps()
    with process(spec, "ps", 0, RUNNEL_CLUSTER_TOKEN="right"):
        monkeypatch.setenv("RUNNEL_CLUSTER_TOKEN", "wrong")
        with pytest.raises(tf.errors.UnauthenticatedError, match="token"):
            tf.Session(f"grpc://{spec['ps'][0]}")
        monkeypatch.setenv("RUNNEL_CLUSTER_TOKEN", "right")
        with tf.Session(f"grpc://{spec['ps'][0]}") as sess:
            np.testing.assert_array_equal(sess.run(y, {x: [1.0]}), [2.0])


def test_whoever_says_something_else_is_hung_up_on():
    server = tf.train.Server.create_local_server()
    try:
        host, port = server.target.removeprefix("grpc://").split(":")
        for said in (b"GET / HTTP/1.1\r\n\r\n", MAGIC + b"\xff" * 100, b"\0" * 64):
            with socket.create_connection((host, int(port)), 10) as sock:
                sock.sendall(said)
                with contextlib.suppress(ConnectionResetError):
                    assert sock.recv(100) == b""
        with tf.Session(server.target) as sess:
            assert sess.run(tf.constant(1)) == 1
    finally:
        server.stop()


def test_tasks_and_clients_talk_through_tls_and_know_each_other(certificates, monkeypatch):
    spec = cluster_of(ps=1, worker=1)
    x, y = double_on_ps()
    large = np.random.default_rng(0).normal(size=200_000).astype(np.float32)

    def check(target: str) -> Any:
        with tf.Session(target) as sess:
            for value in (large[:3], large):
                np.testing.assert_array_equal(sess.run(y, {x: value}), value * 2)

    with process(spec, "ps", 0, **certificates):
        for name, value in certificates.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("runnel.distributed.peers._host", lambda: "another machine")
        worker = tf.train.Server(spec, "worker", 0)
        try:
            check(worker.target)
            [channel] = worker.peers.channels()
            assert type(channel._stream).__name__ == "TlsStream"  # type: ignore[attr-defined]
            check(f"grpc://{spec['ps'][0]}")
        finally:
            worker.stop()
        # Without a certificate of the authority's nobody comes in.
        for name in ("RUNNEL_TLS_CERT", "RUNNEL_TLS_KEY", "RUNNEL_TLS_CA"):
            monkeypatch.delenv(name)
        worker = tf.train.Server(spec, "worker", 0)
        try:
            config = tf.ConfigProto(operation_timeout_in_ms=500)
            with (
                tf.Session(worker.target, config=config) as sess,
                pytest.raises(tf.errors.UnavailableError, match="/job:ps"),
            ):
                sess.list_devices()
        finally:
            worker.stop()


def test_who_reads_through_tls_does_not_wait_to_answer(certificates):
    """A change of keys, say, while the other side does not read."""
    certificate, key, authority, _ = certificates.values()
    security = Security(certificate=certificate, key=key, authority=authority)
    client, server = security.client_context(), security.server_context()
    assert client is not None and server is not None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        dialled = socket.create_connection(listening.getsockname())
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        accepted, _ = listening.accept()
    taking_up = in_thread(lambda: TlsStream(accepted, server, True, None))
    one = TlsStream(dialled, client, False, "127.0.0.1")
    other = taking_up.result(30)
    answer = b"answer" * (1 << 17)  # more than the system takes while nobody reads
    tls, answers = one._tls, [answer]

    class Answering:
        def read(self, *arguments: Any) -> Any:
            try:
                return tls.read(*arguments)
            except ssl.SSLWantReadError:
                if answers:
                    tls.write(answers.pop())
                raise

        def write(self, content: Any) -> int:
            return tls.write(content)

    try:
        much = bytes(1 << 22)
        buffers: Any = deque([much])
        one.send(buffers, deque(), wait=False)
        assert buffers and one.has_unsent
        one._tls = Answering()  # type: ignore[assignment]
        other.send(deque([b"question"]), deque(), wait=True)
        read = bytearray(len(b"question"))
        assert in_thread(lambda: one.receive(memoryview(read))).result(30) == len(read)
        assert read == b"question" and not answers
        buffers.append(b"the end")
        sending = in_thread(lambda: one.send(buffers, deque(), wait=True))
        found, more = bytearray(), bytearray(1 << 20)
        while not found.endswith(b"the end"):
            found += more[: other.receive(memoryview(more))]
        sending.result(30)
        assert len(found) == len(much) + len(answer) + len(b"the end")
        assert found.replace(b"\0", b"") == answer + b"the end"
    finally:
        one.close()
        other.close()
