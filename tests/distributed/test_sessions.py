"""Sessions on a cluster do what sessions of one process do, wherever operations are."""

from __future__ import annotations

import gc
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import runnel as tf
from runnel.distributed.transport.backlog import MOST_WAITING
from runnel.runtime.session import settings
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


def _traced(sess, fetches, feed_dict=None):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    found = sess.run(fetches, feed_dict, options=options, run_metadata=metadata)
    by_device = {stats.device: list(stats.node_stats) for stats in metadata.step_stats.dev_stats}
    return found, by_device


@pytest.mark.parametrize("master", ["ps0", "worker0", "worker1"])
def test_a_trace_has_what_went_from_task_to_task(cluster, master):
    """From the task that made a value to the one that uses it, which has it before."""
    ps, worker = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
    with tf.device("/job:ps/task:0"):
        fed = tf.placeholder(tf.float32, [4, 5])
        there = tf.multiply(fed, 3.0, name="made")
    with tf.device("/job:worker/task:0"):
        here = tf.reduce_sum(there, name="used")
    with tf.Session(cluster[master].target) as sess:
        found, by_device = _traced(sess, here, {fed: np.ones([4, 5])})
    assert found == 60
    rows = {device for device in by_device if device.endswith("/memcpy")}
    (moved,) = by_device[f"{worker}/device:CPU:0/memcpy"]
    assert f"from {ps}/device:CPU:0 to {worker}/device:CPU:0" in moved.timeline_label
    assert "made" in moved.node_name
    (output,) = moved.output
    assert output.tensor_description.allocation_description.requested_bytes == 80
    assert [dim.size for dim in output.tensor_description.shape.dim] == [4, 5]
    assert any(stats.node_name == "made" for stats in by_device[f"{ps}/device:CPU:0"])
    (used,) = [s for s in by_device[f"{worker}/device:CPU:0"] if s.node_name == "used"]
    arrived = moved.all_start_micros + moved.all_end_rel_micros
    assert moved.all_start_micros < arrived <= used.all_start_micros
    # The master gives what was fed to the first, and gets what was fetched from the second.
    fed_row, fetched_row = f"{ps}/memcpy", f"/job:{master[:-1]}/replica:0/task:{master[-1]}/memcpy"
    assert (fed_row in rows) == (master != "ps0" or fed_row == fetched_row)
    assert (fetched_row in rows) == (master != "worker0")


def test_a_trace_has_each_iteration_that_crosses(cluster):
    with tf.device("/job:worker/task:0"):

        def body(i, total):
            with tf.device("/job:ps/task:0"):
                step = tf.multiply(tf.cast(i, tf.float32), 2.0, name="doubled")
            return i + 1, total + step

        _, total = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.constant(0.0)])
    with tf.Session(cluster["worker0"].target) as sess:
        found, by_device = _traced(sess, total)
    assert found == 6
    moved = by_device["/job:worker/replica:0/task:0/device:CPU:0/memcpy"]
    assert sum("doubled" in stats.node_name for stats in moved) == 3


@pytest.mark.parametrize("of_session", [None, True, False])
@pytest.mark.parametrize("of_process", [True, False])
def test_parts_multiply_as_their_session_says(cluster, monkeypatch, of_session, of_process):
    monkeypatch.setattr(settings, "current", replace(settings.current, tensor_float_32=of_process))
    config = tf.ConfigProto()
    if of_session is not None:
        own = config.graph_options.rewrite_options.custom_optimizers.add(name="runnel")
        own.parameter_map["tensor_float_32"].b = of_session
    with tf.device("/job:ps/task:0"):
        there = tf.placeholder_with_default(2.0, []) * 3.0
    with tf.Session(cluster["worker0"].target, config=config) as sess:
        sess.run(there)
        [part] = cluster["ps0"].host.sessions[sess._backend.number].parts.values()
        assert part.plan()._options.tensor_float_32 is (
            of_process if of_session is None else of_session
        )


_thread_op = tf.register_op("NameOfThread", outputs="name: string", stateful=True, host=True)
_thread_op.shape(lambda: ())


@_thread_op.kernel
def _(xp):
    return np.array(threading.current_thread().name.encode(), object)


def test_a_part_runs_where_it_may_be_held_up_while_readers_are_slow(cluster):
    with tf.device("/job:ps/task:0"):
        name = _thread_op()
    backlog = cluster["ps0"].peers.backlog
    with tf.Session(cluster["worker0"].target) as sess:
        found = [sess.run(name) for _ in range(30)]
        assert found[-1].startswith(b"runnel-reader")
        backlog.add(2 * MOST_WAITING)
        try:
            assert sess.run(name).startswith(b"runnel-step")
        finally:
            backlog.add(-2 * MOST_WAITING)
        assert sess.run(name).startswith(b"runnel-reader")


def test_the_graphs_of_a_step_are_those_of_all_its_devices(cluster):
    with tf.device("/job:ps/task:0"):
        there = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="there")
    with tf.device("/job:worker/task:0"):
        here = tf.add(there, 1.0, name="here")
    options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
    with tf.Session(cluster["worker0"].target) as sess:
        assert sess.run(here, options=options, run_metadata=metadata) == 7.0
    nodes = {
        (node.device, node.op): node for graph in metadata.partition_graphs for node in graph.node
    }
    ps, worker = [f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")]
    assert nodes[ps, "Mul"].name == "there" and nodes[worker, here.op.type].name == "here"
    sent, received = nodes[ps, "_Send"], nodes[worker, "_Recv"]
    assert sent.attr["tensor_name"] == received.attr["tensor_name"]
    assert len(metadata.partition_graphs) == 2


def test_a_step_over_tasks_is_explained_where_its_session_is(cluster):
    with tf.device("/job:ps/task:0"):
        there = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="there")
    with tf.device("/job:worker/task:0"):
        here = tf.add(there, 1.0, name="here")
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run(here)
        found = sess.explain(here)
        *own, part = found
        assert found.runs == 1 and any("here" in unit.operations for unit in own)
        assert part.kind == "part" and part.tier == "elsewhere" and "there" in part.operations
        assert part.device == "/job:ps/replica:0/task:0" and "another task" in str(found)
        assert "here" in sess.explain([here]).to_html()


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
            with pytest.raises(tf.errors.UnimplementedError, match="in another process"):
                sess.explain(z, [x])
            with pytest.raises(tf.errors.InvalidArgumentError, match="y:0|mul"):
                sess.run(y, {x: [1.0, 2.0, 3.0]})
            name = tf.constant(["a", "b"])
            assert list(sess.run(name)) == [b"a", b"b"]
            tf.Session.reset(f"grpc://{spec['worker'][0]}")
            with pytest.raises(tf.errors.FailedPreconditionError, match="v"):
                sess.run(y, {x: [1.0, 2.0]})
