"""Tasks that are killed, stopped or started anew: who depended on them is told; nobody hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

import runnel as tf
from runnel.distributed.client_calls import status
from tests.distributed.clusters import Process, cluster_of, raised_by, servers

pytestmark = pytest.mark.timeout(120)


@contextmanager
def worker_and_processes(
    *jobs: str, **environment: str
) -> Iterator[tuple[Any, dict[str, Process]]]:
    """A worker in this process, and a parameter server for each of ``jobs`` in its own."""
    spec = cluster_of(worker=1, **dict.fromkeys(jobs, 1))
    processes = {}
    worker = None
    try:
        for job in jobs:
            processes[job] = Process(spec, job, 0)
        worker = tf.train.Server(spec, "worker", 0)
        yield worker, {**processes, "spec": spec}  # type: ignore[dict-item]
    finally:
        if worker is not None:
            worker.stop()
        for process in processes.values():
            process.kill()


def variable_on(job: str) -> tf.Variable:
    with tf.device(f"/job:{job}/task:0"):
        return tf.Variable(1.0, name=f"on_{job}")


def blocked_on(job: str) -> tf.Tensor:
    with tf.device(f"/job:{job}/task:0"):
        return tf.FIFOQueue(1, tf.float32, [()]).dequeue(name="never")  # the user's line


def test_a_killed_task_is_named_at_once_and_others_go_on():
    with worker_and_processes("ps", "other") as (worker, processes):
        v, w = variable_on("ps"), variable_on("other")
        never = blocked_on("ps")
        everything = tf.Session(worker.target)
        config = tf.ConfigProto(device_filters=["/job:other"])
        spared = tf.Session(worker.target, config=config)
        with everything, spared:
            everything.run([v.initializer, w.initializer])
            thread, errors = raised_by(lambda: everything.run(never))
            assert _eventually_running(worker, 1)
            processes["ps"].kill()
            thread.join(60)
            assert isinstance(errors[0], tf.errors.UnavailableError)
            assert "/job:ps/replica:0/task:0" in str(errors[0])
            assert "nothing was heard" not in str(errors[0])  # its end was seen, not its silence
            assert errors[0].op is never.op and "# the user's line" in str(errors[0])
            for step, op in ((never, never.op), (v + 1.0, v.value().op)):  # known there, and new
                with pytest.raises(tf.errors.UnavailableError, match="/job:ps") as raised:
                    everything.run(step)
                assert raised.value.op is op
            assert spared.run(w) == 1.0  # it does not depend on the task


def _eventually_running(server: Any, count: int) -> bool:
    """True when the masters of ``server`` run ``count`` steps, in the end."""
    limit = time.monotonic() + 30
    waiting = threading.Event()
    while sum(len(m.running) for m in server.masters.values()) != count:
        if waiting.wait(0.01) or time.monotonic() > limit:
            return False
    return True


def test_a_stopped_task_is_lost_after_the_deadline(monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "3")  # not 1: it may be a busy machine
    with worker_and_processes("ps") as (worker, processes):
        v = variable_on("ps")
        with tf.Session(worker.target) as sess:
            sess.run(v.initializer)
            assert sess.run(v) == 1.0
            processes["ps"].signal(signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(tf.errors.UnavailableError, match="nothing was heard"):
                sess.run(v)
            assert time.monotonic() - begun < 10
            processes["ps"].signal(signal.SIGCONT)
        with tf.Session(worker.target) as sess:  # it is there again, with its state
            assert sess.run(v) == 1.0


def test_a_task_that_was_started_anew_aborts_the_sessions_of_its_former_life():
    with worker_and_processes("ps") as (worker, processes):
        v = variable_on("ps")
        spec: Any = processes["spec"]
        with tf.Session(worker.target) as sess:
            sess.run(v.initializer)
            processes["ps"].kill()
            again = Process(spec, "ps", 0)
            try:
                with tf.Session(worker.target) as other:
                    with pytest.raises(tf.errors.FailedPreconditionError, match="on_ps"):
                        other.run(v)
                    other.run(v.initializer)
                    assert other.run(v) == 1.0
                with pytest.raises(tf.errors.AbortedError, match="started anew") as raised:
                    sess.run(v)
                assert raised.value.op is not None and raised.value.op.name.startswith("on_ps")
            finally:
                again.kill()


def test_closing_a_session_ends_its_steps_on_every_task():
    with servers(ps=1, worker=1) as cluster:
        never = blocked_on("ps")
        sess = tf.Session(cluster["worker0"].target)
        thread, errors = raised_by(lambda: sess.run(never))
        assert cluster["ps0"].host.steps_waiting(1, 30)
        sess.close()
        thread.join(60)
        assert isinstance(errors[0], tf.errors.CancelledError)
        _assert_idle(cluster)


def _assert_idle(cluster: dict[str, Any]) -> None:
    """Nothing of any step is left, in the end: others are told of an end by messages."""
    limit = time.monotonic() + 60
    waiting = threading.Event()
    for server in cluster.values():
        while server.host.runs or any(m.running for m in server.masters.values()):
            assert not waiting.wait(0.01) and time.monotonic() < limit, server.task
        for session in server.host._worker.sessions.values():
            assert not session.steps


def test_a_deadline_ends_a_step_on_every_task():
    with servers(ps=1, worker=1) as cluster:
        with tf.device("/job:worker/task:0"):
            here = tf.negative(blocked_on("ps"))
        with tf.Session(cluster["worker0"].target) as sess:
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(here, options=tf.RunOptions(timeout_in_ms=200))
            _assert_idle(cluster)


@pytest.mark.parametrize("job", ["worker", "ps"])
def test_a_deadline_ends_a_step_that_waits_inside_a_function_of_a_dataset(job):
    """Such a function is a step of its own, begun by whichever thread has the part in hand."""
    with tf.device(f"/job:{job}/task:0"):
        queue = tf.FIFOQueue(1, tf.int64, [()], shared_name="never")
        numbers = tf.data.Dataset.range(3).map(lambda number: number + queue.dequeue())
        iterator = tf.data.make_initializable_iterator(numbers)
        element = iterator.get_next()
    with servers(ps=1, worker=1) as cluster, tf.Session(cluster["worker0"].target) as sess:
        sess.run(iterator.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(element, options=tf.RunOptions(timeout_in_ms=200))
        _assert_idle(cluster)


def test_a_step_does_not_wait_for_a_value_between_two_tasks_that_have_lost_each_other():
    """It may have been under way; its master reaches both, and knows nothing of it."""
    with tf.device("/job:ps/task:1"):
        queue = tf.FIFOQueue(9, tf.float32, [()])
        taken, put = queue.dequeue(), queue.enqueue(2.0)
    with tf.device("/job:ps/task:0"):
        used = taken * 3.0
    with servers(ps=2, worker=1) as cluster, tf.Session(cluster["worker0"].target) as sess:
        sess.run(put)
        assert sess.run(used) == 6.0
        thread, errors = raised_by(lambda: sess.run(used))
        assert cluster["ps0"].host.steps_waiting(1, 60)
        assert cluster["ps1"].host.steps_waiting(1, 60)
        cluster["ps0"].peers.known(cluster["ps1"].task).close("the cable was pulled")
        thread.join(60)
        assert isinstance(errors[0], tf.errors.UnavailableError) and "cable" in str(errors[0])
        assert cluster["ps1"].task in str(errors[0]) and errors[0].op is used.op
        _assert_idle(cluster)
        sess.run(put)  # they find each other again
        assert sess.run(used) == 6.0


def test_the_first_cause_is_told_with_the_users_line():
    with servers(ps=1, worker=2) as cluster:
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            checked = tf.check_numerics(x, "not a number", name="culprit")  # this line
        with tf.device("/job:worker/task:1"):
            dependent = tf.negative(checked)
        with tf.device("/job:worker/task:0"):
            result = dependent + blocked_on("worker") * 0.0
        with tf.Session(cluster["worker0"].target) as sess:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                sess.run(result, {x: float("nan")})
            assert caught.value.op is checked.op
            assert "# this line" in str(caught.value) and "not a number" in str(caught.value)
            assert "/job:ps/replica:0/task:0" in str(caught.value)
            _assert_idle(cluster)


def test_a_thousand_aborted_steps_leave_nothing_behind():
    with servers(ps=1, worker=1) as cluster:
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            checked = tf.check_numerics(x, "bad")
        with tf.device("/job:worker/task:0"):
            y = tf.negative(checked)
        with tf.Session(cluster["worker0"].target) as sess:
            step = sess.make_callable(y, [x])

            def fail(count: int) -> None:
                for _ in range(count):
                    with pytest.raises(tf.errors.InvalidArgumentError):
                        step(float("nan"))

            fail(20)
            threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
            fail(1000)
            assert step(2.0) == -2.0
            assert threading.active_count() <= threads + 2
            assert len(os.listdir("/proc/self/fd")) <= files + 2
            _assert_idle(cluster)
            for server in cluster.values():
                for session in server.host._worker.sessions.values():
                    assert len(session.over) <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files of a process")
@pytest.mark.parametrize("fails_on", ["ps", "worker"])
def test_a_thousand_aborted_steps_leave_no_socket_file_or_memory_between_processes(fails_on):
    with worker_and_processes("ps") as (worker, processes):
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            large = tf.fill([1 << 16], 1.0 + x)  # through shared memory, if it gets so far
        with tf.device(f"/job:{fails_on}/task:0"):
            checked = tf.check_numerics(large, "bad")
        with tf.device("/job:worker/task:0"):
            y = tf.reduce_sum(checked[:4])
        ps = processes["ps"].pid
        address = cast(Any, processes["spec"])["ps"][0]

        def taken() -> tuple[int, int, int]:
            told = json.loads(status(address))
            return len(os.listdir(f"/proc/{ps}/fd")), told["threads"], told["memory_bytes"] >> 20

        with tf.Session(worker.target) as sess:
            step = sess.make_callable(y, [x])

            def fail(count: int) -> None:
                for _ in range(count):
                    with pytest.raises(tf.errors.InvalidArgumentError):
                        step(float("nan"))

            fail(100)
            files, threads, megabytes = taken()
            here = threading.active_count(), len(os.listdir("/proc/self/fd"))
            fail(1000)
            assert step(2.0) == 12.0
            # First what this process has: a client that has asked closes its sockets later.
            assert threading.active_count() <= here[0] + 2
            assert len(os.listdir("/proc/self/fd")) <= here[1] + 4
            now = taken()
            assert now[0] <= files + 4 and now[1] <= threads + 2 and now[2] <= megabytes + 200


def test_a_client_that_dies_is_forgotten():
    with servers(ps=1) as cluster:
        program = textwrap.dedent("""
            import sys
            import runnel as tf
            never = tf.FIFOQueue(1, tf.float32, [()]).dequeue()
            sess = tf.Session(sys.argv[1])
            print(sess.run(tf.constant(1)), flush=True)
            sess.run(never)
        """)
        target = cluster["ps0"].target
        client = subprocess.Popen(
            [sys.executable, "-c", program, target], stdout=subprocess.PIPE, text=True
        )
        assert client.stdout is not None and client.stdout.readline() == "1\n"
        assert _eventually_running(cluster["ps0"], 1)
        client.kill()
        client.wait()
        client.stdout.close()
        limit = time.monotonic() + 60
        waiting = threading.Event()
        while cluster["ps0"].masters:
            assert not waiting.wait(0.02) and time.monotonic() < limit
        _assert_idle(cluster)


def test_a_task_that_is_not_there_is_named_when_a_step_gives_up_waiting():
    spec = cluster_of(ps=1, worker=1)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        config = tf.ConfigProto(operation_timeout_in_ms=300)
        with tf.Session(worker.target, config=config) as sess:
            assert sess.run(tf.constant(1) + 1) == 2  # nobody else is needed for that
            with pytest.raises(tf.errors.UnavailableError, match="/job:ps.*cannot be reached"):
                sess.run(variable_on("ps").initializer)
            with pytest.raises(tf.errors.UnavailableError, match="/job:ps.*cannot be reached"):
                sess.list_devices()
    finally:
        worker.stop()


def test_a_step_waits_for_a_task_that_it_needs_and_that_comes_later():
    spec = cluster_of(ps=2, worker=1)
    worker, ps0 = tf.train.Server(spec, "worker", 0), tf.train.Server(spec, "ps", 0)
    late = []
    try:
        with tf.device("/job:ps/task:0"):
            here = tf.Variable(1.0)
        with tf.device("/job:ps/task:1"):
            there = tf.Variable(2.0)
        with tf.colocate_with(there.op):
            beside = tf.constant(3.0) + 1.0
        with tf.Session(worker.target) as sess:
            sess.run(here.initializer)
            coming = threading.Timer(0.2, lambda: late.append(tf.train.Server(spec, "ps", 1)))
            coming.start()
            assert sess.run(beside) == 4.0  # it is to be with what has yet to come
            coming.join()
            sess.run(there.initializer)
            assert sess.run(here + there) == 3.0
            tasks = {device.name.rpartition("/device")[0] for device in sess.list_devices()}
            assert len(tasks) == 3
    finally:
        for server in (worker, ps0, *late):
            server.stop()


def test_a_closed_session_waits_for_nobody():
    spec = cluster_of(ps=1, worker=1)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        there = variable_on("ps")
        sess = tf.Session(worker.target)
        thread, found = raised_by(lambda: sess.run(there.initializer))
        sess.close()
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(found[0], tf.errors.CancelledError | RuntimeError)
    finally:
        worker.stop()


@pytest.mark.parametrize(
    ("waits_on", "has_part_here"), [("worker", True), ("ps", True), ("ps", False)]
)
@pytest.mark.parametrize("stopped", [["worker0"], ["ps0", "worker0"], ["worker0", "ps0"]])
def test_steps_end_with_the_task_whose_master_runs_them(waits_on, has_part_here, stopped):
    with tf.device(f"/job:{waits_on}/task:0"):
        taken = tf.FIFOQueue(1, tf.float32, [()], shared_name="never").dequeue()
    with tf.device("/job:worker/task:0"):
        used = taken + 1.0
    step = used if has_part_here else taken.op
    with servers(ps=1, worker=1) as cluster:
        sess = tf.Session(cluster["worker0"].target)
        thread, found = raised_by(lambda: sess.run(step))
        assert _eventually_running(cluster["worker0"], 1)
        for name in stopped:
            cluster[name].stop()
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(found[0], tf.errors.CancelledError | tf.errors.UnavailableError)
        with pytest.raises((tf.errors.OpError, RuntimeError), match="stopped|closed"):
            sess.run(step)


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
def test_a_task_that_does_not_move_holds_up_only_who_needs_it():
    with worker_and_processes("ps", "other") as (worker, processes):
        shared = variable_on("ps")
        processes["other"].signal(signal.SIGSTOP)
        try:
            with tf.Session(worker.target) as sess:
                sess.run(shared.initializer)
                assert sess.run(shared) == 1.0
        finally:
            processes["other"].signal(signal.SIGCONT)


def test_two_servers_cannot_have_one_port():
    with servers(ps=1) as cluster, pytest.raises(tf.errors.UnknownError, match="cannot listen"):
        tf.train.Server({"ps": [cluster["ps0"].target.removeprefix("grpc://")]}, "ps", 0)


def test_the_step_that_has_a_task_end_does_not_fail_for_it(monkeypatch):
    with tf.device("/job:ps/task:0"):
        ends = tf.FIFOQueue(1, tf.float32, [()], shared_name="ends")
        end = ends.enqueue(0.0)
    with servers(ps=1, worker=1) as cluster, tf.Session(cluster["worker0"].target) as sess:
        ps = cluster["ps0"]
        send, stopped = ps.host._send, threading.Event()

        def stop() -> None:
            ps.stop()
            stopped.set()

        def send_late(*arguments: Any) -> None:
            # The task sees what was enqueued, and ends, before the step's end is told.
            threading.Thread(target=stop).start()
            stopped.wait(0.2)
            send(*arguments)

        monkeypatch.setattr(ps.host, "_send", send_late)
        sess.run(end)
        assert stopped.wait(60)


_ENDS_WHEN_TOLD = """
import json, sys, threading
import runnel as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
send = server.host._send
def send_late(*arguments):
    threading.Event().wait(0.3)  # the program's end is not held up by this
    send(*arguments)
server.host._send = send_late
print("ready", flush=True)
with tf.device("/job:ps/task:0"):
    ends = tf.FIFOQueue(1, tf.float32, [()], shared_name="ends")
    ended = ends.dequeue()
config = tf.ConfigProto(device_filters=["/job:ps/task:0"])
with tf.Session(server.target, config=config) as sess:
    sess.run(ended)
"""


def test_the_step_that_has_a_program_end_does_not_fail_for_it():
    spec = cluster_of(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        end = tf.FIFOQueue(1, tf.float32, [()], shared_name="ends").enqueue(0.0)
    process = Process(spec, "ps", 0, program=_ENDS_WHEN_TOLD)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        with tf.Session(worker.target) as sess:
            sess.run(end)
        assert process.wait() == 0
    finally:
        worker.stop()
        process.kill()
