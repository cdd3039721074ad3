"""Tokens and TLS: tasks that do not belong together do not talk."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.transport.frame import MAGIC
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
