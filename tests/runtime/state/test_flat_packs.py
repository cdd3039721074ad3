"""Slots of optimizers in one array of a device: each is still a variable, for whoever looks."""

from __future__ import annotations

import threading
from typing import Any

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import joined_updates
from runnel.runtime.devices.device_memory import forget_lost
from runnel.runtime.state.flat_pack import FlatPack
from runnel.runtime.state.pack import Pack, Row
from runnel.runtime.state.task_state import TaskState
from tests.both_tiers import COMPILED, session

COUNT = 5


@pytest.fixture(autouse=True)
def _as_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_updates, "_PLATFORMS", frozenset({"cpu"}))


class Model:
    """Variables of several shapes, trained with momentum; the same in NumPy."""

    def __init__(self) -> None:
        self.variables = [
            tf.get_variable(f"v{i}", initializer=np.full((i + 1, 2), 0.5, np.float32))
            for i in range(COUNT)
        ]
        loss = tf.add_n([tf.reduce_sum(v) for v in self.variables])  # whose gradient is one
        optimizer = tf.train.MomentumOptimizer(0.125, 0.5)
        self.whole = optimizer.minimize(loss)
        self.part = optimizer.minimize(loss, var_list=self.variables[:4])
        self.slots = [optimizer.get_slot(v, "momentum") for v in self.variables]
        self.start = tf.global_variables_initializer()


def packs_of(sess: Any, variables: list[Any]) -> list[FlatPack]:
    """The pack of each variable."""
    held = [sess._task.cell(v.op).held for v in variables]
    assert all(type(row) is Row for row in held), held
    return [row.pack for row in held]


def test_a_value_is_taken_out_of_its_pack_only_under_the_lock(monkeypatch):
    """Else a step of another thread may be taking the array over at that very moment."""
    model = Model()
    slot, other = model.slots[2], model.slots[3]
    reshaped = tf.assign(other, tf.zeros([7]), validate_shape=False)
    branch = tf.cond(tf.placeholder_with_default(True, []), lambda: slot + 1.0, lambda: slot * 2.0)
    queue = tf.FIFOQueue(100, tf.float32)
    waits = queue.dequeue() + tf.reduce_sum(slot)
    limited = tf.RunOptions(timeout_in_ms=60_000)
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    on_the_host = tf.py_func(np.sin, [slot], tf.float32)
    taken: list[bool] = []

    def noted(part: Any) -> Any:
        def noting(pack: Pack, index: int) -> Any:
            taken.append(task.lock.locked())
            return part(pack, index)

        return noting

    for kind in (FlatPack, Pack):
        monkeypatch.setattr(kind, "part", noted(kind.part))
    with session(COMPILED) as sess:
        task = sess._task
        sess.run(model.start)
        for fetch in (slot, slot.read_value(), tf.square(slot), branch, waits, on_the_host):
            for options in (None, limited, traced):
                sess.run(queue.enqueue(1.0))
                sess.run(model.whole)
                packs_of(sess, model.slots)
                sess.run(fetch, None, options, tf.RunMetadata())
        sess.explain(model.whole)
        sess.run(model.whole, None, traced, tf.RunMetadata())
        sess.run(reshaped.op)
        with pytest.raises(tf.errors.OpError):
            sess.run(model.whole)
        assert sess.run(other).shape == (7,)
    assert taken and all(taken)


def test_what_a_row_tells_without_the_lock_is_what_its_value_is():
    model = Model()
    with session(COMPILED) as sess:
        sess.run(model.start)
        sess.run(model.whole)
        for slot in model.slots:
            row = sess._task.cell(slot.op).held
            row.block_until_ready()
            value = sess.run(slot)
            assert row.is_ready()
            assert (row.shape, row.dtype, row.nbytes) == (value.shape, value.dtype, value.nbytes)


def test_threads_read_slots_with_deadlines_while_another_trains():
    model = Model()
    limited = tf.RunOptions(timeout_in_ms=60_000)
    steps, failures = 150, []
    with session(COMPILED) as sess:
        sess.run(model.start)
        sess.run(model.whole)
        ended = threading.Event()

        def read() -> None:
            try:
                while not ended.is_set():
                    for value in sess.run(model.slots, options=limited):
                        assert (value == value.flat[0]).all()
            except Exception as error:  # noqa: BLE001 (told below)
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(steps):
            sess.run(model.whole)
        ended.set()
        for thread in threads:
            thread.join()
        assert not failures
        momentum, value = 0.0, 0.5
        for _ in range(steps + 1):
            momentum = 0.5 * momentum + 1.0
            value -= 0.125 * momentum
        for found in sess.run(model.variables):
            np.testing.assert_allclose(found, value, rtol=1e-5)


def test_a_pack_that_all_have_left_keeps_no_memory():
    model = Model()
    with session(COMPILED) as sess:
        sess.run(model.start)
        sess.run(model.part)
        (old,) = set(packs_of(sess, model.slots[:4]))
        old.part(0)
        assert isinstance(old.array, jax.Array)
        sess.run(model.whole)
        assert not isinstance(old.array, jax.Array)
        assert old._parts == (None, [])
        (new,) = set(packs_of(sess, model.slots))
        sess.run(model.part)  # one stays
        assert isinstance(new.array, jax.Array)
        np.testing.assert_array_equal(sess.run(model.slots[4]), np.full((5, 2), 1.0))
        np.testing.assert_array_equal(sess.run(model.slots[0]), np.full((1, 2), 1.75))


def packed() -> tuple[FlatPack, list[Any]]:
    """Two cells with the values zero and one, and two, in a pack."""
    task = TaskState()
    with tf.Graph().as_default():
        variables = [tf.get_variable(f"v{i}", [2 - i]) for i in range(2)]
    cells = [task.cell(v.op) for v in variables]
    pack = task.pack(cells, ((2,), (1,)))
    pack.held = jax.numpy.arange(3.0)
    return pack, list(zip(cells, [v.op for v in variables], strict=True))


@pytest.mark.parametrize("was_read", [False, True], ids=["unread", "read"])
def test_an_array_that_a_failed_step_took_along_is_lost_unless_there_are_the_parts(was_read):
    pack, cells = packed()
    if was_read:
        pack.part(0)
    pack.array.delete()
    lost = forget_lost(cells)
    if was_read:
        assert lost == []
        np.testing.assert_array_equal(pack.load(), [0.0, 1.0, 2.0])
    else:
        assert [op.name for op in lost] == ["v0", "v1"]
        assert pack.load() is None


@pytest.mark.parametrize("moment", ["on", "off"])
@pytest.mark.parametrize("what", ["taken apart", "collected"])
def test_an_interrupt_while_jax_switches_its_types_leaves_them(what, moment, monkeypatch):
    pack, cells = packed()
    if what == "collected":
        cells[0][0].value = np.ones(2, np.float32)
    act = pack.load if what == "collected" else lambda: pack.part(1)
    act()
    pack.held = jax.numpy.arange(3.0)
    if what == "collected":
        cells[0][0].value = np.ones(2, np.float32)
    real = jax.enable_x64

    class Interrupted:
        def __init__(self, value: bool) -> None:
            self._inner = real(value)
            self._value = value

        def __enter__(self) -> None:
            self._inner.__enter__()
            if self._value and moment == "on":
                raise KeyboardInterrupt

        def __exit__(self, *error: object) -> None:
            if moment == "off":
                raise KeyboardInterrupt
            self._inner.__exit__(*error)

    with monkeypatch.context() as patch:
        patch.setattr(jax, "enable_x64", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            act()
    assert not jax.config.jax_enable_x64
    np.testing.assert_array_equal(cells[1][0].value, [2.0])
