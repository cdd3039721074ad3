"""Updates of rows by the interpreter: in place, and seen by nobody who should not see them."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import bound_executable
from runnel.runtime.state.reader_wait import ReaderWait
from tests.both_tiers import COMPILED, INTERPRETED, session

ROWS, WIDTH = 50_000, 16
BYTES = ROWS * WIDTH * 4

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "lazy adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
}


def most_memory_of(run) -> int:
    """The bytes that a call takes at most beyond what is there before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_sparse_step_copies_no_table(name, shards, resource):
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable(
        "table",
        [ROWS, WIDTH],
        partitioner=tf.fixed_size_partitioner(shards) if shards > 1 else None,
        use_resource=resource,
    )
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids, "div")))
    train = OPTIMIZERS[name]().minimize(loss)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        feed = {ids: np.array([3, 40_000, 3, 17])}
        for _ in range(3):
            sess.run(train, feed)  # the first takes over arrays that others have made
        assert most_memory_of(lambda: sess.run(train, feed)) < BYTES / 20


def test_a_step_that_fails_after_the_update_has_changed_nothing():
    table = tf.get_variable("table", initializer=np.zeros((4, 2), np.float32))
    x = tf.placeholder(tf.float32, [])
    update = tf.scatter_update(table, [1], [[5.0, 6.0]])
    with tf.control_dependencies([update]):
        checked = tf.check_numerics(x, "x")
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run([update.op, checked], {x: np.nan})
        assert not sess.run(table).any()
        sess.run([update.op, checked], {x: 1.0})
        assert sess.run(table)[1].tolist() == [5, 6]


def test_what_was_read_before_stays_as_it_was():
    table = tf.get_variable("table", initializer=np.zeros((4, 2), np.float32))
    before = table.read_value()
    flat = tf.reshape(before, [-1])
    with tf.control_dependencies([flat]):
        update = tf.scatter_add(table, [1, 1], [[1.0, 2.0], [1.0, 2.0]])
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        fetched = sess.run(table)
        old, view, _ = sess.run([before, flat, update.op])
        again, _, _ = sess.run([before, flat, update.op])
        assert not fetched.any() and not old.any() and not view.any()
        assert again[1].tolist() == [2, 4]
        assert sess.run(table)[1].tolist() == [4, 8]


def test_variables_that_were_given_one_array_do_not_change_together():
    first = tf.get_variable("first", initializer=np.zeros((4, 2), np.float32))
    second = tf.get_variable("second", initializer=np.ones((4, 2), np.float32))
    same = second.assign(first)
    update = tf.scatter_update(first, [0], [[7.0, 7.0]])
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(same.op)
        sess.run(update.op)
        assert sess.run(first)[0].tolist() == [7, 7]
        assert not sess.run(second).any()


def test_variables_may_swap_their_rows():
    first = tf.get_variable("first", initializer=np.zeros((3, 2), np.float32))
    second = tf.get_variable("second", initializer=np.ones((3, 2), np.float32))
    rows = [first.read_value(), second.read_value()]
    with tf.control_dependencies(rows):
        swap = tf.group(
            tf.scatter_update(first, [0, 1, 2], rows[1]),
            tf.scatter_update(second, [0, 1, 2], rows[0]),
        )
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(swap)
        assert sess.run(first).all() and not sess.run(second).any()


def test_an_update_that_another_follows_in_the_step():
    table = tf.get_variable("table", initializer=np.zeros((4, 1), np.float32))
    first = tf.scatter_add(table, [0, 1], [[1.0], [1.0]])
    with tf.control_dependencies([first]):
        second = tf.scatter_mul(table, [1, 2], [[5.0], [5.0]])
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([first, second])[1].tolist() == [[1], [5], [0], [0]]
        sess.run(second.op)
        assert sess.run(table).tolist() == [[2], [30], [0], [0]]


METHODS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("repeated", [2, 40])
def test_rows_that_come_often_are_combined_one_by_one(method, repeated):
    rng = np.random.default_rng(0)
    value = rng.uniform(1, 2, (10, 3)).astype(np.float32)
    places = rng.integers(0, max(1, 20 // repeated), (5, 4))
    rows = rng.uniform(0.5, 1.5, (5, 4, 3)).astype(np.float32)
    expected = value.copy()
    METHODS[method].at(expected, places, rows)
    table = tf.get_variable("table", initializer=value)
    update = getattr(tf, f"scatter_{method}")(table, places, rows)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update.op)
        np.testing.assert_array_equal(sess.run(table), expected)


def test_places_of_several_indices_in_place_too():
    value = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    table = tf.get_variable("table", initializer=value)
    update = tf.scatter_nd_add(table, [[1, 2], [3, 0], [1, 2]], [[1.0, 2.0]] * 3)
    expected = value.copy()
    np.add.at(expected, ([1, 3, 1], [2, 0, 2]), [[1.0, 2.0]] * 3)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update.op)
        np.testing.assert_array_equal(sess.run(table), expected)


@pytest.mark.timeout(120)
def test_a_step_never_sees_half_of_another_s_update():
    table = tf.get_variable("table", initializer=np.zeros((2_000, 8), np.float32))
    number = tf.placeholder(tf.float32, [])
    rows = tf.fill([2_000, 8], number)
    update = tf.scatter_update(table, np.arange(2_000)[::-1].copy(), rows)
    spread = tf.reduce_max(table) - tf.reduce_min(table)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        stop, torn = threading.Event(), []

        def read():
            while not stop.is_set():
                torn.append(float(sess.run(spread)))

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for i in range(200):
            sess.run(update.op, {number: i})
        stop.set()
        for reader in readers:
            reader.join()
        assert torn and not any(torn)
        assert (sess.run(table) == 199).all()


def test_tables_stay_where_their_rows_change_when_each_step_has_other_shapes():
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [ROWS, WIDTH], partitioner=tf.fixed_size_partitioner(2))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids, "div")))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    rng = np.random.default_rng(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            sess.run(train, {ids: rng.integers(0, ROWS, 500)})
        cells = [sess._task.cell(part.op) for part in table]
        assert all(cell.by_rows for cell in cells)
        before = [cell.value.ctypes.data for cell in cells]
        sess.run(train, {ids: rng.integers(0, ROWS, 500)})
        assert [cell.value.ctypes.data for cell in cells] == before


@pytest.mark.parametrize("product", [False, True])
def test_a_part_that_only_updates_a_large_table_leaves_it_where_rows_are_set(product):
    table = tf.get_variable("table", initializer=np.zeros((ROWS, WIDTH), np.float32))
    given = tf.placeholder(tf.float32, [4, WIDTH])
    rows = tf.py_func(lambda x: x, [given], tf.float32)  # the host cuts the step
    rows.set_shape([4, WIDTH])
    if product:
        rows = tf.matmul(rows, tf.eye(WIDTH))
    update = tf.scatter_sub(table, [1, 2, 3, 3], rows)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(update.op, {given: np.ones((4, WIDTH), np.float32)})
        assert sess.run(table)[3, 0] == -6
        assert sess._backend.task.cell(table.op).by_rows is not product


class Watched:
    """A large table that a compiled step changes rows of, and somebody who looks at it."""

    def __init__(self, sess):
        self.ids = tf.placeholder(tf.int64, [3])
        table = tf.get_variable("table", initializer=np.zeros((ROWS, WIDTH), np.float32))
        self.update = tf.scatter_add(table, self.ids, tf.ones([3, WIDTH])).op
        self.sess, self.task = sess, sess._task
        self.cell = self.task.cell(table.op)
        sess.run(tf.global_variables_initializer())
        self.step()

    def step(self):
        self.sess.run(self.update, {self.ids: [1, 2, 2]})

    @property
    def address(self):
        with self.task.lock:
            return self.cell.held.unsafe_buffer_pointer()

    def view(self):
        with self.task.lock:
            return np.asarray(self.cell.held)


def test_a_compiled_step_waits_for_a_reader_and_copies_no_table(monkeypatch):
    monkeypatch.setattr(bound_executable, "COPIED_PER_SECOND", 1e3)  # so it has an hour
    waits, begin = threading.Event(), ReaderWait.begin

    def told(wait):
        begin(wait)
        waits.set()

    monkeypatch.setattr(ReaderWait, "begin", told)
    with session(COMPILED) as sess:
        watched = Watched(sess)
        before, view = watched.address, watched.view()
        stepping = threading.Thread(target=watched.step, daemon=True)
        stepping.start()
        assert waits.wait(60)
        assert view[2, 0] == 2
        del view
        for event in list(watched.task.await_readers):
            event.set()  # as an interpreted segment does when it has ended
        stepping.join(60)
        assert not stepping.is_alive() and not watched.task.await_readers
        assert watched.address == before
        assert watched.view()[2, 0] == 4


def test_a_compiled_step_does_not_wait_longer_for_a_reader_than_a_copy_takes():
    with session(COMPILED) as sess:
        watched = Watched(sess)
        before, view = watched.address, watched.view()
        watched.step()
        assert watched.address != before
        assert view[2, 0] == 2 and watched.view()[2, 0] == 4
        assert not watched.task.await_readers


def test_a_compiled_step_that_waits_for_a_reader_can_be_stopped(monkeypatch):
    monkeypatch.setattr(bound_executable, "COPIED_PER_SECOND", 1e3)
    with session(COMPILED) as sess:
        watched = Watched(sess)
        view = watched.view()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(
                watched.update,
                {watched.ids: [1, 2, 2]},
                tf.RunOptions(timeout_in_ms=50),
            )
        assert view[2, 0] == 2 and watched.view()[2, 0] == 2
        assert not watched.task.writing
        del view
        watched.step()
        assert watched.view()[2, 0] == 4


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_threads_that_train_a_table_while_others_look_rows_up_lose_no_update(level):
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", initializer=np.zeros((ROWS, WIDTH), np.float32))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    stop = threading.Event()
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        chosen = [np.array([3, 4, 4]), np.array([4, ROWS - 1])]
        look = sess.make_callable(tf.gather(table, [4]))

        def work(fed):
            for _ in range(50):
                sess.run(train, {ids: fed})

        def read():
            while not stop.is_set():
                assert float(look()[0, 0]) <= 0

        threads = [threading.Thread(target=work, args=(fed,)) for fed in chosen]
        reader = threading.Thread(target=read)
        for thread in (*threads, reader):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        reader.join()
        found = sess.run(table)
    expected = np.zeros((ROWS, WIDTH))
    for fed in chosen:
        np.add.at(expected, fed, -50.0)
    np.testing.assert_array_equal(found, expected)
