"""Collectives over the tasks of a cluster, and training by them without parameter servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import Process, cluster_of, servers
from tests.sleepers import await_sleepers

WORKERS = 3


def together(cluster: dict[str, Any], work: Any) -> list[Any]:
    """What ``work(index, server)`` gives on a thread for each worker, all at the same time."""
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(work, i, cluster[f"worker{i}"]) for i in range(WORKERS)]
        return [future.result(100) for future in futures]


@pytest.fixture(scope="module")
def cluster():
    with servers(worker=WORKERS, ps=1) as found:
        yield found


@pytest.mark.parametrize("size", [5, 100_000])
def test_every_worker_gets_the_sum_and_all_values(cluster, size):
    def work(index: int, server: Any) -> Any:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
            x = tf.placeholder(tf.float32, [size])
            total = tf.collectives.all_reduce(x, WORKERS)
            mean = tf.collectives.all_reduce(x, WORKERS, final_op="Div")
            every = tf.collectives.all_gather(x[:1], WORKERS)
            with tf.Session(server.target) as sess:
                return [
                    sess.run([total, mean, every], {x: np.full(size, index + turn)})
                    for turn in range(4)
                ]

    for found in together(cluster, work):
        for turn, (total, mean, every) in enumerate(found):
            np.testing.assert_array_equal(total, np.full(size, 3 + 3 * turn, np.float32))
            np.testing.assert_array_equal(mean, np.full(size, 1 + turn, np.float32))
            np.testing.assert_array_equal(every, np.arange(WORKERS) + turn)


def test_a_step_that_runs_out_of_time_leaves_the_others_to_wait(cluster):
    def work(index: int, milliseconds: int) -> Any:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
            total = tf.collectives.all_reduce(tf.ones([4]), WORKERS, group_key=2)
            with tf.Session(cluster[f"worker{index}"].target) as sess:
                return sess.run(total, options=tf.RunOptions(timeout_in_ms=milliseconds))

    with ThreadPoolExecutor(WORKERS) as pool:
        patient = pool.submit(work, 1, 60_000)
        with pytest.raises(tf.errors.DeadlineExceededError):
            work(0, 300)
        # The group had not been formed: who waits goes on when all are there.
        rest = [pool.submit(work, i, 60_000) for i in (0, 2)]
        for future in (patient, *rest):
            np.testing.assert_array_equal(future.result(60), np.full(4, 3.0))


def test_a_session_with_state_of_its_own_takes_nothing_from_the_groups_of_others(cluster):
    totals = []
    for index in range(WORKERS):
        with tf.device(f"/job:worker/task:{index}"):
            totals.append(tf.collectives.all_reduce(tf.ones([4]), WORKERS, 9, 1))
    sessions = [tf.Session(cluster[f"worker{index}"].target) for index in range(WORKERS)]
    isolated = tf.ConfigProto(isolate_session_state=True)
    limit = tf.RunOptions(timeout_in_ms=60_000)
    with ThreadPoolExecutor(WORKERS) as pool:
        first = pool.submit(sessions[1].run, totals[1], None, limit)
        assert await_sleepers(sessions[1]._steps, 1, 60)
        with tf.Session(cluster["worker1"].target, config=isolated) as own:
            assert own.run(tf.constant(1.0)) == 1.0
        rest = [pool.submit(sessions[i].run, totals[i], None, limit) for i in (0, 2)]
        for future in (first, *rest):
            np.testing.assert_array_equal(future.result(60), np.full(4, 3.0))
    for session in sessions:
        session.close()


def _batch(index: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(index)
    return rng.normal(size=(8, 5)), rng.normal(size=(8, 2))


def _loss(x: Any, y: Any, begin: float = 1.0) -> Any:
    w = tf.get_variable("w", [5, 2], tf.float64, tf.constant_initializer(begin))
    b = tf.get_variable("b", [2], tf.float64, tf.zeros_initializer())
    return tf.reduce_mean(tf.squared_difference(tf.matmul(x, w) + b, y))


@pytest.mark.parametrize("name", ["GradientDescent", "Adam"])
def test_workers_train_as_one_process_does_with_the_whole_batch(cluster, name):
    def optimizer() -> Any:
        return getattr(tf.train, f"{name}Optimizer")(0.1)

    def work(index: int, server: Any) -> Any:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
            # Others begin elsewhere, and are given the chief's variables.
            loss = _loss(*map(tf.constant, _batch(index)), begin=1.0 + index)
            collective = tf.train.CollectiveOptimizer(optimizer(), WORKERS, group_key=5)
            train = collective.minimize(loss)
            hooks = [collective.make_session_run_hook(index == 0)]
            creator = tf.train.ChiefSessionCreator(master=server.target)
            with tf.train.MonitoredSession(creator, hooks=hooks) as sess:
                for _ in range(40):
                    sess.run(train)
                return sess.run(tf.trainable_variables())

    found = together(cluster, work)
    with tf.Graph().as_default():
        batches = [_batch(i) for i in range(WORKERS)]
        x, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        train = optimizer().minimize(_loss(tf.constant(x), tf.constant(y)))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(40):
                sess.run(train)
            expected = sess.run(tf.trainable_variables())
    for values in found:
        for value, wanted, first in zip(values, expected, found[0], strict=True):
            np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-12)
            assert value.tobytes() == first.tobytes(), "workers stay equal bit for bit"


def test_a_table_on_a_parameter_server_is_shared_and_rows_of_own_tables_are_gathered(cluster):
    def graph(index: int | None) -> Any:
        where = "" if index is None else f"/job:worker/task:{index}"
        with tf.device("/job:ps/task:0" if index is not None else ""):
            table = tf.get_variable("table", [9, 2], tf.float64, tf.ones_initializer())
        with tf.device(where):
            own = tf.get_variable("own", [9, 2], tf.float64, tf.ones_initializer())
            b = tf.get_variable("b", [2], tf.float64, tf.zeros_initializer())
        return table, own, b

    def loss_of(variables: Any, rows: Any) -> Any:
        table, own, b = variables
        found = tf.nn.embedding_lookup(table, rows) * 2.0 + tf.nn.embedding_lookup(own, rows) + b
        return tf.reduce_sum(found**2)

    rows = [[0, 1, 1], [1, 2], [5]]

    def work(index: int, server: Any) -> Any:
        with tf.Graph().as_default():
            variables = graph(index)
            with tf.device(f"/job:worker/task:{index}"):
                opt = tf.train.GradientDescentOptimizer(0.01)
                collective = tf.train.CollectiveOptimizer(opt, WORKERS, group_key=6)
                train = collective.minimize(loss_of(variables, tf.constant(rows[index])))
                done = tf.collectives.all_reduce(tf.ones([]), WORKERS, group_key=6)
            with tf.Session(server.target) as sess:
                sess.run(tf.variables_initializer(variables if index == 0 else variables[1:]))
                sess.run(done)
                sess.run(train)
                sess.run(done)
                return sess.run(variables)

    found = together(cluster, work)
    with tf.Graph().as_default():
        variables = graph(None)
        loss = tf.add_n([loss_of(variables, tf.constant(r)) for r in rows]) / WORKERS
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            expected = sess.run(variables)
    for values in found:
        for value, wanted in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-12)


def test_processes_share_memory_and_a_group_goes_on_when_a_lost_one_is_back():
    spec = cluster_of(worker=3)
    size = 300_001  # of float32: in shared memory, also a third of it
    turn = tf.placeholder(tf.float32, [])
    means: dict[int, list[Any]] = {2: [], 3: []}
    for count, index in ((2, 0), (2, 1), (3, 0), (3, 1), (3, 2)):
        with tf.device(f"/job:worker/task:{index}"):
            mine = tf.range(size, dtype=tf.float32) * (index + 1.0) + turn
            mean = tf.collectives.all_reduce(mine, count, count, 1, final_op="Div")
            means[count].append(mean)
    server = tf.train.Server(spec, "worker", 0)
    others = [Process(spec, "worker", index) for index in (1, 2)]
    try:
        for life in range(2):
            with tf.Session(server.target) as sess:
                for number in range(4):
                    for count, found in sess.run(means, {turn: number}).items():
                        expected = np.arange(size) * (count + 1) / 2 + number
                        for value in found:
                            np.testing.assert_allclose(value, expected, rtol=1e-6)
                if life == 0:
                    others[1].kill()
                    with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                        sess.run(means, {turn: 0.0})
                    others[1] = Process(spec, "worker", 2)
    finally:
        for other in others:
            other.kill()
        server.stop()


def test_devices_of_one_process_make_a_group():
    config = tf.ConfigProto(device_count={"CPU": 2})
    results = []
    for i in range(2):
        with tf.device(f"/cpu:{i}"):
            results.append(tf.collectives.all_reduce(tf.constant([i + 1.0]), 2, 1, 10, "Mul"))
    with tf.Session(config=config) as sess:
        assert [r.tolist() for r in sess.run(results)] == [[2.0], [2.0]]
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(results[0], options=tf.RunOptions(timeout_in_ms=100))
        assert [r.tolist() for r in sess.run(results)] == [[2.0], [2.0]]


def test_a_step_that_fails_while_gradients_travel_changes_nothing():
    names = ["large", "larger", "small", "smaller"]
    sizes = [200_000, 300_000, 3, 0]
    with tf.device("/cpu:0"):
        variables = [tf.get_variable(n, initializer=np.ones(s)) for n, s in zip(names, sizes)]
        loss = tf.add_n([tf.reduce_sum(v**2) for v in variables])
        collective = tf.train.CollectiveOptimizer(tf.train.GradientDescentOptimizer(0.25), 2)
        train = collective.minimize(loss)
    sent = [op for op in tf.get_default_graph().get_operations() if op.type == "CollectiveReduce"]
    assert len(sent) == 3, "the small ones travel together"
    with tf.device("/cpu:1"):
        answers = [
            tf.collectives.all_reduce(
                tf.zeros(op.inputs[0].shape, tf.float64), 2, 1, op.get_attr("instance_key")
            ).op
            for op in sent
        ]
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        for missing in answers:
            given = [answer for answer in answers if answer is not missing]
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run([train, *given], options=tf.RunOptions(timeout_in_ms=200))
            for value in sess.run(variables):
                np.testing.assert_array_equal(value, 1.0)
        sess.run([train, *answers])
        for value in sess.run(variables):
            np.testing.assert_array_equal(value, 0.75)


def test_the_optimizers_hint_is_that_of_all_its_collectives():
    dense = tf.get_variable("dense", [3, 2])
    table = tf.get_variable("table", [5, 2])
    loss = tf.reduce_sum(dense) + tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]))
    inner = tf.train.GradientDescentOptimizer(0.1)
    optimizer = tf.train.CollectiveOptimizer(inner, 2, communication_hint="nccl")
    optimizer.minimize(loss)
    for is_chief in (True, False):
        optimizer.make_session_run_hook(is_chief).begin()
    operations = tf.get_default_graph().get_operations()
    found = [op for op in operations if op.type.startswith("Collective")]
    kinds = {"Reduce", "Gather", "BcastSend", "BcastRecv"}
    assert {op.type.removeprefix("Collective") for op in found} == kinds
    assert {op.get_attr("communication_hint") for op in found} <= {"nccl", b"nccl"}


def test_a_timeout_fails_the_operation_and_names_it():
    alone = tf.collectives.all_reduce(tf.ones([2]), 2, timeout=0.1, name="alone")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError, match="some never came") as caught:
            sess.run(alone)
        assert caught.value.op.name == "alone"
        done = tf.collectives.all_reduce(tf.ones([2]), 1, group_key=2, timeout=100.0)
        assert sess.run(done).tolist() == [1.0, 1.0]


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        tf.collectives.all_reduce(tf.ones([2]), 0)
    with pytest.raises(ValueError, match="this is a scalar"):
        tf.collectives.all_gather(tf.ones([]), 2)
    with pytest.raises(ValueError, match="at least one"):
        tf.train.CollectiveOptimizer(tf.train.AdamOptimizer(), 0)
