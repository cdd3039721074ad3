"""Sessions on a cluster do what sessions of one process do, wherever operations are."""

from __future__ import annotations

import gc
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED
from tests.distributed.clusters import cluster_of, process, servers
from tests.runtime.program_generator import random_program
from tests.runtime.test_fuzz import SEEDS, assert_equal, fuzz
from tests.runtime.test_random_placement import FedByQueues, random_flow

pytestmark = pytest.mark.timeout(300)

TASKS = ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, Any]]:
    with servers(ps=1, worker=2) as found:
        yield found


def scatter(seed: int) -> Callable[[Any], str]:
    return lambda op: TASKS[zlib.crc32(f"{seed} {op.name}".encode()) % len(TASKS)]


def level_of(level: int) -> tf.ConfigProto:
    config = tf.ConfigProto(isolate_session_state=True)
    config.graph_options.optimizer_options.global_jit_level = level
    return config


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@given(seed=SEEDS)
@fuzz(4)
def test_a_random_program_on_three_tasks_gives_what_numpy_gives(cluster, level, queued, seed):
    program = random_program(seed, max_steps=20)
    fetches = list(range(len(program.steps)))
    with tf.Graph().as_default(), tf.device(scatter(seed)):
        described = FedByQueues() if queued else tf
        tensors, variables = program.build(described)
        init = tf.global_variables_initializer()
        feeds = {tensors[number]: value for number, value in program.feeds.items()}
        fill = []
        if isinstance(described, FedByQueues):
            fill = [described.queues[t].enqueue(value) for t, value in feeds.items()]
            feeds = {}
        with tf.Session(cluster["worker0"].target, config=level_of(level)) as sess:
            sess.run(init)
            state = list(program.initial)
            for number in range(2):
                expected = program.compute(fetches, state)
                sess.run(fill)
                found = sess.run([tensors[f] for f in fetches], feeds)
                where = f"seed {seed}, level {level}, run {number}"
                for f, a, b in zip(fetches, found, expected, strict=True):
                    assert_equal(a, b, f"{where}: step {f} {program.steps[f]}")
                for a, b in zip(sess.run(variables), state, strict=True):
                    assert_equal(a, b, f"{where}: a variable")


@given(seed=SEEDS)
@fuzz(4)
def test_loops_and_conditionals_over_three_tasks_give_what_one_gives(cluster, seed):
    fed = [np.float64([0.3, -1.2]), np.float64([-2.0, 0.7])]
    with tf.Graph().as_default(), tf.Session() as sess:
        values, x, v = random_flow(seed, True)
        sess.run(tf.global_variables_initializer())
        expected = [(sess.run(values, {x: value}), sess.run(v)) for value in fed]
    with tf.Graph().as_default():
        with tf.device(scatter(seed)):
            values, x, v = random_flow(seed, True)
            init = tf.global_variables_initializer()
        with tf.Session(cluster["worker1"].target, config=level_of(0)) as sess:
            sess.run(init)
            for value, (wanted, state) in zip(fed, expected, strict=True):
                for one, other in zip(sess.run(values, {x: value}), wanted, strict=True):
                    np.testing.assert_allclose(one, other, 1e-9, 1e-9, err_msg=f"seed {seed}")
                np.testing.assert_allclose(sess.run(v), state, 1e-9, err_msg=f"seed {seed}")


# State ------------------------------------------------------------------------------------------


def test_variables_outlive_sessions_and_are_shared(cluster):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="shared_by_sessions")
        add = tf.assign_add(v, 1.0)
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run(v.initializer)
        assert sess.run(add) == 2.0
    with tf.Session(cluster["worker1"].target) as sess:
        assert sess.run(add) == 3.0
        with tf.Session(cluster["ps0"].target) as other:
            assert other.run(add) == 4.0
        assert sess.run(v) == 4.0


def test_an_isolated_session_has_state_of_its_own(cluster):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="isolated")
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run(v.initializer)
        config = tf.ConfigProto(isolate_session_state=True)
        other = tf.Session(cluster["worker0"].target, config=config)
        with other, pytest.raises(tf.errors.FailedPreconditionError, match="isolated"):
            other.run(v)


def test_a_session_that_a_task_does_not_answer_for_leaves_nothing_behind(cluster, monkeypatch):
    master = cluster["worker0"]

    def silent(asked: Any, seconds: float = 1.0) -> bytes:
        raise tf.errors.DeadlineExceededError(None, None, "it has not answered")

    monkeypatch.setattr(master, "answer_of", silent)
    before = dict(master.masters), dict(master.host.sessions)
    with tf.device("/job:ps/task:0"):
        there = tf.Variable(1.0)
    with (
        tf.Session(master.target) as sess,
        pytest.raises(tf.errors.DeadlineExceededError, match="not answered"),
    ):
        sess.run(there.initializer)
    assert (master.masters, master.host.sessions) == before


def test_reset_clears_the_containers_of_all_tasks(cluster):
    with tf.container("experiment"), tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="in_container")
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(2.0, name="in_no_container")
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run([v.initializer, w.initializer])
        tf.Session.reset(cluster["worker0"].target, ["experiment"])
        with pytest.raises(tf.errors.FailedPreconditionError, match="in_container"):
            sess.run(v)
        assert sess.run(w) == 2.0


def test_a_queue_on_one_task_joins_steps_of_others_and_holds_no_thread(cluster):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(100, tf.int32, [()], shared_name="joins")
        size = queue.size()
    with tf.device("/job:worker/task:1"):
        element = queue.dequeue()
        doubled = element * 2
    x = tf.placeholder(tf.int32, [])
    put = queue.enqueue(x)
    found: list[int] = []
    with (
        tf.Session(cluster["worker1"].target) as taking,
        tf.Session(cluster["worker0"].target) as giving,
    ):
        taking.run(size)
        threads = [
            threading.Thread(target=lambda: found.append(taking.run(doubled))) for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        host = cluster["ps0"].host
        assert host.steps_waiting(20, 60)
        # The callers' own threads wait; none of a task does.
        limit = time.monotonic() + 30
        while any(server.host.threads.busy for server in cluster.values()):
            assert not threading.Event().wait(0.01) and time.monotonic() < limit
        for number in range(20):
            giving.run(put, {x: number})
        for thread in threads:
            thread.join(60)
    assert sorted(found) == [2 * number for number in range(20)]


# Values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True])
def test_values_of_every_type_and_shape_cross(apart, cluster):
    rng = np.random.default_rng(0)
    values: list[Any] = [np.float32(3.5), np.zeros((0, 3), np.int8), np.array([True, False])]
    for dtype in (np.float16, np.float32, np.float64, np.int64, np.uint8, np.complex64):
        values.append((rng.normal(size=(3, 5)) * 10).astype(dtype))
    values.append(rng.normal(size=(200, 300)))  # large enough for shared memory
    values.append(np.array([["a", ""], ["\0x", "\u00e9" * 300]], dtype=object))
    with tf.device("/job:ps/task:0"):
        there = [
            tf.identity(tf.placeholder(v.dtype if v.dtype != object else tf.string)) for v in values
        ]
        there.append(tf.cast(tf.fill([3], 1.5), tf.bfloat16))
    with tf.device("/job:worker/task:0"):
        back = [tf.identity(t) for t in there]
    feeds = {t.op.inputs[0]: v for t, v in zip(there, values, strict=False)}

    def check(target: str) -> None:
        with tf.Session(target) as sess:
            found = sess.run(back, feeds)
            again = sess.run(back, feeds)
        for value, one, other in zip(values, found, again, strict=False):
            expected = (
                value if value.dtype != object else np.char.encode(value.astype(str), "utf-8")
            )
            np.testing.assert_array_equal(one, expected)
            np.testing.assert_array_equal(other, expected)
        assert found[-1].dtype == tf.bfloat16.as_numpy_dtype
        found[-2].flags.writeable  # noqa: B018 (it is an array)
        found[9][0, 0] = 1.0  # the caller's own

    if not apart:
        check(cluster["worker0"].target)
        return
    spec = cluster_of(ps=1, worker=1)
    with process(spec, "ps", 0):
        worker = tf.train.Server(spec, "worker", 0)
        try:
            check(worker.target)
        finally:
            worker.stop()


def test_partial_runs_go_over_tasks(cluster):
    with tf.device("/job:ps/task:0"):
        a = tf.placeholder(tf.float32, [])
        doubled = a * 2
    with tf.device("/job:worker/task:0"):
        b = tf.placeholder(tf.float32, [])
        result = doubled + b
    with tf.Session(cluster["worker0"].target) as sess:
        handle = sess.partial_run_setup([doubled, result], [a, b])
        assert sess.partial_run(handle, doubled, {a: 2.0}) == 4.0
        assert sess.partial_run(handle, result, {b: 1.0}) == 5.0


def test_a_trace_has_the_operations_of_all_tasks(cluster):
    with tf.device("/job:ps/task:0"):
        there = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="there")
    with tf.device("/job:worker/task:0"):
        here = tf.add(there, 1.0, name="here")
    metadata = tf.RunMetadata()
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run(
            here, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata
        )
    names = {
        (stats.device, node.node_name)
        for stats in metadata.step_stats.dev_stats
        for node in stats.node_stats
    }
    assert ("/job:ps/replica:0/task:0/device:CPU:0", "there") in names
    assert ("/job:worker/replica:0/task:0/device:CPU:0", "here") in names


def test_tasks_forget_the_parts_of_steps_that_will_not_run_again(cluster):
    with tf.Session(cluster["worker0"].target) as sess:
        for number in range(30):
            with tf.device("/job:ps/task:0"):
                there = tf.constant(number) + 1
            assert sess.run(there) == number + 1
            sess._prepared.clear()  # as when a graph is changed, or there are too many plans
        gc.collect()
        sess.run(there + 0)
        [session] = [s for s in cluster["ps0"].host.sessions.values() if s.parts]
        assert len(session.parts) <= 3


def test_list_devices_names_all_tasks_and_filters_leave_some_out(cluster):
    with tf.Session(cluster["worker0"].target) as sess:
        assert {d.name for d in sess.list_devices()} == {
            f"{task.replace('/task', '/replica:0/task')}/device:CPU:0" for task in TASKS
        }
    filtered = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with tf.Session(cluster["worker0"].target, config=filtered) as sess:
        assert len(sess.list_devices()) == 2


# Clients of other processes ---------------------------------------------------------------------


def test_a_client_of_another_process_extends_its_graph_and_runs_it():
    spec = cluster_of(ps=1, worker=1)
    with process(spec, "ps", 0), process(spec, "worker", 0):
        x = tf.placeholder(tf.float32, [None])
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0], name="v")
        y = x * v
        with tf.Session(f"grpc://{spec['worker'][0]}") as sess:
            sess.run(v.initializer)
            np.testing.assert_array_equal(sess.run(y, {x: [3.0, 4.0]}), [3.0, 8.0])
            z = tf.reduce_sum(y)  # the graph grows
            train = tf.assign_add(v, [1.0, 1.0])
            assert sess.run(z, {x: [3.0, 4.0]}) == 11.0
            np.testing.assert_array_equal(sess.run(train), [2.0, 3.0])
            assert len(sess.list_devices()) == 2
            with pytest.raises(tf.errors.InvalidArgumentError, match="y:0|mul"):
                sess.run(y, {x: [1.0, 2.0, 3.0]})
            name = tf.constant(["a", "b"])
            assert list(sess.run(name)) == [b"a", b"b"]
            tf.Session.reset(f"grpc://{spec['worker'][0]}")
            with pytest.raises(tf.errors.FailedPreconditionError, match="v"):
                sess.run(y, {x: [1.0, 2.0]})
