"""A task behind a link that is taken down: it is silent, and its connection stays open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import runnel as tf
from tests.distributed.clusters import Process

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        sys.platform != "linux" or os.getuid() != 0 or shutil.which("ip") is None,
        reason="network namespaces need root and iproute2",
    ),
]

HERE, THERE = "10.203.77.1", "10.203.77.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def namespace() -> Iterator[tuple[str, str]]:
    """A network namespace, joined to this one by a link; their names."""
    name = f"runnel-{os.getpid()}"
    link = f"rn{os.getpid()}"[:13]
    try:
        try:
            ip("netns", "add", name)
            ip("link", "add", link, "type", "veth", "peer", "name", f"{link}p", "netns", name)
            ip("addr", "add", f"{HERE}/24", "dev", link)
            ip("link", "set", link, "up")
            ip("-n", name, "addr", "add", f"{THERE}/24", "dev", f"{link}p")
            ip("-n", name, "link", "set", f"{link}p", "up")
            ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no linked namespace can be made: {error.stderr.decode().strip()}")
        yield name, link
    finally:
        for arguments in (["link", "del", link], ["netns", "del", name]):
            subprocess.run(["ip", *arguments], capture_output=True)


def test_a_task_that_is_cut_off_is_lost_after_the_deadline_and_found_again(monkeypatch):
    monkeypatch.setenv("RUNNEL_INSECURE", "1")
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "1")
    with namespace() as (name, link):
        spec = {"ps": [f"{THERE}:22333"], "worker": [f"{HERE}:22334"]}
        ps = Process(spec, "ps", 0, before=("ip", "netns", "exec", name))
        worker = tf.train.Server(spec, "worker", 0)
        try:
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(1.0)
                never = tf.FIFOQueue(1, tf.float32, [()]).dequeue()
            with tf.Session(worker.target) as sess:
                sess.run(v.initializer)
                assert sess.run(v) == 1.0
                ip("link", "set", link, "down")
                begun = time.monotonic()
                with pytest.raises(tf.errors.UnavailableError, match="/job:ps"):
                    sess.run(never)
                assert time.monotonic() - begun < 10
                ip("link", "set", link, "up")
            with tf.Session(worker.target) as sess:
                assert sess.run(v) == 1.0
        finally:
            worker.stop()
            ps.kill()
