"""Tasks in processes of their own: what they compute, keep and refuse, and that nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import Process, await_status, cluster_of
from tests.runtime.program_generator import random_program
from tests.runtime.test_fuzz import assert_equal
from tests.runtime.test_random_placement import random_flow

pytestmark = pytest.mark.timeout(300)

TASKS = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0")


class Cluster:
    """Two parameter servers in processes of their own, and a worker in this one."""

    def __init__(self) -> None:
        self.spec = cluster_of(ps=2, worker=1)
        self.processes = [Process(self.spec, "ps", index) for index in range(2)]
        self.worker = tf.train.Server(self.spec, "worker", 0)
        self.target = self.worker.target

    def close(self) -> None:
        self.worker.stop()
        for process in self.processes:
            process.kill()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    yield found
    found.close()


def scattered(seed: int) -> Any:
    """Puts each operation somewhere, but Python functions where they are."""

    def task(op: Any) -> str:
        place = zlib.crc32(f"{seed} {op.name}".encode()) % len(TASKS)
        return TASKS[-1 if op.type.startswith("PyFunc") else place]

    return tf.device(task)


def isolated() -> tf.ConfigProto:
    return tf.ConfigProto(isolate_session_state=True)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_program_over_processes_gives_what_numpy_gives(cluster, seed):
    program = random_program(seed, max_steps=20)
    fetches = list(range(len(program.steps)))
    with tf.Graph().as_default(), scattered(seed):
        tensors, variables = program.build(tf)
        init = tf.global_variables_initializer()
        feeds = {tensors[number]: value for number, value in program.feeds.items()}
        with tf.Session(cluster.target, config=isolated()) as sess:
            sess.run(init)
            state = list(program.initial)
            for _ in range(2):
                expected = program.compute(fetches, state)
                found = sess.run([tensors[f] for f in fetches], feeds)
                for f, a, b in zip(fetches, found, expected, strict=True):
                    assert_equal(a, b, f"seed {seed}: step {f} {program.steps[f]}")
                for a, b in zip(sess.run(variables), state, strict=True):
                    assert_equal(a, b, f"seed {seed}: a variable")


@pytest.mark.parametrize("seed", range(3))
def test_loops_and_conditionals_over_processes_give_what_one_process_gives(cluster, seed):
    fed = np.float64([0.3, -1.2])
    with tf.Graph().as_default(), tf.Session() as sess:
        values, x, v = random_flow(seed, True)
        sess.run(tf.global_variables_initializer())
        expected = sess.run(values, {x: fed}), sess.run(v)
    with tf.Graph().as_default(), scattered(seed):
        values, x, v = random_flow(seed, True)
        init = tf.global_variables_initializer()
        with tf.Session(cluster.target, config=isolated()) as sess:
            sess.run(init)
            for one, other in zip(sess.run(values, {x: fed}), expected[0], strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9)
            np.testing.assert_allclose(sess.run(v), expected[1], 1e-9)


def test_a_python_function_is_refused_where_it_was_not_made(cluster):
    with tf.device("/job:worker/task:0"):
        here = tf.py_func(lambda x: x + 1, [1.0], tf.float32)
    with tf.device("/job:ps/task:0"):
        there = tf.py_func(lambda x: x + 1, [1.0], tf.float32, name="of_another")
    with tf.Session(cluster.target) as sess:
        assert sess.run(here) == 2.0
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="in the process that built it"
        ) as e:
            sess.run(there)
        assert e.value.op is there.op and "/job:ps/replica:0/task:0" in str(e.value)


def test_a_failed_step_changes_nothing_where_it_failed(cluster):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
        w = tf.Variable(1.0)
        checked = tf.check_numerics(x, "bad")
        updates = [tf.assign_add(v, checked), tf.assign_add(w, 1.0)]
    with tf.device("/job:ps/task:1"):
        depends = tf.Variable(1.0)
        updates.append(tf.assign_add(depends, checked))
    with tf.Session(cluster.target) as sess:
        sess.run([v.initializer, w.initializer, depends.initializer])
        for _ in range(20):
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
                sess.run(updates, {x: np.nan})
            assert sess.run([v, w, depends]) == [1.0, 1.0, 1.0]
        sess.run(updates, {x: 2.0})
        assert sess.run([v, w, depends]) == [3.0, 2.0, 3.0]


def draws(target: str, number: Any, count: int, config: Any = None) -> list[float]:
    with tf.Session(target, config=config) as sess:
        return [float(sess.run(number)) for _ in range(count)]


def test_random_streams_outlive_sessions_unless_these_are_isolated_or_they_are_reset(cluster):
    with tf.Graph().as_default(), tf.Session() as sess, tf.device(None):
        number = tf.random_uniform([], seed=5, name="draw")
        expected = [float(sess.run(number)) for _ in range(6)]
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            number = tf.random_uniform([], seed=5, name="draw")
        tf.Session.reset(cluster.target)
        assert draws(cluster.target, number, 2) == expected[:2]
        assert draws(cluster.target, number, 2) == expected[2:4]
        for _ in range(2):
            assert draws(cluster.target, number, 2, isolated()) == expected[:2]
        assert draws(cluster.target, number, 2) == expected[4:]
        tf.Session.reset(cluster.target)
        assert draws(cluster.target, number, 2) == expected[:2]


def resources(pid: int) -> dict[str, int]:
    """What a process has: threads, open files, blocks of shared memory."""
    with open(f"/proc/{pid}/maps") as maps:
        blocks = sum("memfd:runnel" in line for line in maps)
    files = len(os.listdir(f"/proc/{pid}/fd"))
    return {"threads": len(os.listdir(f"/proc/{pid}/task")), "files": files, "blocks": blocks}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_thousand_aborted_steps_leave_nothing_behind_in_any_process(cluster):
    x = tf.placeholder(tf.float32, [1 << 16])  # through shared memory
    with tf.device("/job:ps/task:0"):
        sent = x + 1.0
    with tf.device("/job:ps/task:1"):
        checked = tf.check_numerics(sent, "bad")
    with tf.device("/job:worker/task:0"):
        y = tf.negative(checked)
    with tf.Session(cluster.target) as sess:
        step = sess.make_callable(y, [x])
        bad = np.full(1 << 16, np.nan, np.float32)

        def fail(count: int) -> None:
            for _ in range(count):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    step(bad)

        pids = [os.getpid(), *(process.pid for process in cluster.processes)]
        fail(50)
        before = [resources(pid) for pid in pids]
        fail(1000)
        assert step(np.ones(1 << 16, np.float32))[0] == -2.0
        for was, pid in zip(before, pids, strict=True):
            now = resources(pid)
            # Each block is a file. A busy machine has more of them on their way at a time, but not
            # one for ten steps.
            more = {"threads": 16, "files": 100, "blocks": 100}
            assert all(now[what] <= was[what] + more[what] for what in was), (was, now)


def is_idle(status: dict[str, Any]) -> bool:
    return not any(s["steps"] for s in [*status["masters"], *status["sessions"]])


def test_an_interrupt_in_a_client_ends_its_steps_on_every_task(cluster):
    program = textwrap.dedent("""
        import sys
        import runnel as tf
        taken = []
        for index in range(2):
            with tf.device(f"/job:ps/task:{index}"):
                taken.append(tf.FIFOQueue(1, tf.float32, [()]).dequeue(name="never"))
        with tf.Session(sys.argv[1]) as sess:
            print(sess.run(tf.constant(1)), flush=True)
            try:
                sess.run(taken)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            print(sess.run(tf.constant(2)), flush=True)
            sys.stdin.read()
    """)
    addresses = [*cluster.spec["ps"], *cluster.spec["worker"]]
    client = subprocess.Popen(
        [sys.executable, "-c", program, cluster.target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with client, contextlib.ExitStack() as failing:
        failing.callback(client.kill)
        assert client.stdout is not None
        assert client.stdout.readline() == "1\n"
        for address in addresses:
            await_status(address, lambda status: not is_idle(status))
        client.send_signal(signal.SIGINT)
        assert client.stdout.readline() == "interrupted\n"
        for address in addresses:  # while the client lives, and its session goes on
            await_status(address, is_idle)
        assert client.stdout.readline() == "2\n"
        failing.pop_all()


def test_servers_run_with_descriptions_that_leave_tasks_out():
    spec = cluster_of(ps=2, worker=1)
    ps, [address] = spec["ps"], spec["worker"]
    tasks = [
        tf.train.Server(tf.train.ClusterSpec({"ps": {1: ps[1]}}), "ps", 1),
        tf.train.Server(
            tf.train.ClusterSpec({"worker": {7: address}, "ps": {1: ps[1]}}), "worker", 7
        ),
    ]
    try:
        with tf.device("/job:ps/task:1"):
            v = tf.Variable(3.0)
        with tf.device("/job:worker/task:7"):
            doubled = v * 2.0
        with tf.Session(tasks[1].target) as sess:
            sess.run(v.initializer)
            assert sess.run(doubled) == 6.0
            names = {device.name.rpartition("/device")[0] for device in sess.list_devices()}
            assert names == {"/job:ps/replica:0/task:1", "/job:worker/replica:0/task:7"}
        with tf.device("/job:ps/task:0"):
            nowhere = tf.Variable(1.0)
        with tf.Session(tasks[1].target) as sess, pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(nowhere.initializer)
    finally:
        for task in tasks:
            task.stop()


_TOLD_TO_END = """
import os, signal, sys, threading
import json
import runnel as tf

def tell():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # it does not wait yet
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
threading.Thread(target=tell).start()
server.join()
os._exit(3)  # a program that goes on as a worker does
"""


def test_a_server_that_is_told_to_end_ends_its_program():
    task = Process(cluster_of(ps=1), "ps", 0, program=_TOLD_TO_END)
    try:
        assert task.wait() == 0
    finally:
        task.kill()
