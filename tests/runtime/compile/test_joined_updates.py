"""Optimizers' formulas over many variables as one: the same values as one variable at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import joined_updates
from runnel.runtime.compile.executable import Executable
from runnel.runtime.state import task_state
from runnel.runtime.state.flat_pack import FlatPack, end_to_end, parts_of

SIZES = (7, 6, 5, 3)
RATE = 0.05
OPTIMIZERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "momentum": (lambda rate: tf.train.MomentumOptimizer(rate, 0.9), 1),
    "nesterov": (lambda rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True), 1),
    "adagrad": (lambda rate: tf.train.AdagradOptimizer(rate), 1),
    "ftrl": (lambda rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.01), 1),
    "adam": (lambda rate: tf.train.AdamOptimizer(rate), 2),
    "adadelta": (lambda rate: tf.train.AdadeltaOptimizer(rate), 2),
    "rmsprop": (lambda rate: tf.train.RMSPropOptimizer(rate), 2),
    "centered": (lambda rate: tf.train.RMSPropOptimizer(rate, momentum=0.9, centered=True), 3),
}
"""With the number of slots."""


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[FlatPack]:
    """The flat packs that sessions make, on a CPU as they do on an accelerator."""
    made: list[FlatPack] = []

    class Noted(FlatPack):
        __slots__ = ()

        def __init__(self, cells: Any, shapes: Any) -> None:
            super().__init__(cells, shapes)
            made.append(self)

    monkeypatch.setattr(joined_updates, "_PLATFORMS", frozenset({"cpu"}))
    monkeypatch.setattr(task_state, "FlatPack", Noted)
    return made


class Network:
    """A perceptron of several layers, and what trains it."""

    def __init__(self, resource: bool = False, inputs: int = 8) -> None:
        numbers = np.random.default_rng(0)
        self.index = tf.placeholder(tf.int32, [])
        value = tf.constant(numbers.standard_normal((4, inputs)), tf.float32)
        with tf.variable_scope("layers", use_resource=resource):
            for layer, units in enumerate(SIZES):
                first = 0.3 * numbers.standard_normal((inputs, units)).astype(np.float32)
                weights = tf.get_variable(f"weights_{layer}", initializer=first)
                bias = tf.get_variable(f"bias_{layer}", [units], initializer=tf.zeros_initializer())
                value, inputs = tf.tanh(value @ weights + bias), units
        self.loss = tf.reduce_sum(tf.square(value - 1.0))
        self.checked_loss = self.loss * tf.gather(tf.constant([1.0, 1.0]), self.index)


def session(compiled: bool) -> tf.Session:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = 1 if compiled else -1
    made = tf.Session(config=config)
    made.run(tf.global_variables_initializer())
    return made


def values_after(steps: int, train: Any, compiled: bool, feed: Any = None) -> list[np.ndarray]:
    with session(compiled) as sess:
        for _ in range(steps):
            sess.run(train, feed)
        return sess.run(tf.global_variables())


def variables_of(pack: FlatPack) -> tuple[int, ...]:
    return tuple([cell.number for cell in pack._cells])


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_joined_formula_gives_what_the_interpreter_gives(name, resource, packs):
    make, slots = OPTIMIZERS[name]
    rate = tf.placeholder(tf.float32, [])
    train = make(rate).minimize(Network(resource).loss)
    expected = values_after(4, train, False, {rate: RATE})
    assert not packs
    assert_same(values_after(4, train, True, {rate: RATE}), expected)
    assert [len(cells) for cells in set(map(variables_of, packs))] == [2 * len(SIZES)] * slots


def test_clipped_gradients_are_part_of_it(packs):
    network = Network()
    optimizer = tf.train.AdamOptimizer(RATE)
    gradients, variables = zip(*optimizer.compute_gradients(network.loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
    update = optimizer.apply_gradients(list(zip(clipped, variables, strict=True)))
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([update]):
        train = average.apply(tf.trainable_variables())
    expected = values_after(4, train, False)
    assert_same(values_after(4, train, True), expected)
    assert len(set(map(variables_of, packs))) == 2  # averages are of variables, which are apart


@pytest.mark.parametrize("fetches", [False, True], ids=["sent", "fetched"])
def test_a_failed_check_leaves_everything_as_it_was(fetches, packs):
    network = Network()
    train = tf.train.AdamOptimizer(RATE).minimize(network.checked_loss)
    fetched = [train, network.loss] if fetches else train
    with session(True) as sess:
        sess.run(fetched, {network.index: 0})
        before = sess.run(tf.global_variables())
        with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
            sess.run(fetched, {network.index: 7})
        assert_same(sess.run(tf.global_variables()), before)
        sess.run(fetched, {network.index: 0})
        found = sess.run(tf.global_variables())
    assert packs
    assert_same(found, values_after(2, fetched, False, {network.index: 0}))


def test_slots_are_variables_like_others(packs, tmp_path):
    network = Network()
    optimizer = tf.train.MomentumOptimizer(RATE, 0.9)
    train = optimizer.minimize(network.loss)
    some = tf.trainable_variables()[2]
    slot = optimizer.get_slot(some, "momentum")
    kept = tf.placeholder(tf.float32, slot.shape)
    change = slot.assign(kept)
    saver = tf.train.Saver()

    def trained(compiled: bool) -> list[Any]:
        with session(compiled) as sess:
            found = []
            for step in range(3):
                sess.run(train)
                found.append(sess.run(slot))
                if step == 1:
                    path = saver.save(sess, str(tmp_path / "saved"))
            sess.run(change, {kept: np.ones(slot.shape.as_list(), np.float32)})
            sess.run(train)
            found.append(sess.run(slot))
            saver.restore(sess, path)
            found.append(sess.run(slot))
            sess.run(train)
            return [*found, *sess.run(tf.global_variables())]

    assert_same(trained(True), trained(False))
    assert packs


def test_two_steps_may_train_the_same_variables(packs):
    network = Network()
    optimizer = tf.train.AdamOptimizer(RATE)
    variables = tf.trainable_variables()
    whole = optimizer.minimize(network.loss)
    part = optimizer.minimize(network.loss, var_list=variables[:6])

    def trained(compiled: bool) -> Any:
        with session(compiled) as sess:
            for step in (whole, part, part, whole, part):
                sess.run(step)
            return sess.run(tf.global_variables())

    assert_same(trained(True), trained(False))
    assert {len(pack._cells) for pack in packs} == {6, 8}


def test_moving_averages_are_joined(packs):
    update = tf.train.GradientDescentOptimizer(RATE).minimize(Network().loss)
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([update]):
        train = average.apply(tf.trainable_variables())
    expected = values_after(4, train, False)
    assert_same(values_after(4, train, True), expected)
    assert len(set(map(variables_of, packs))) == 1


def test_what_cannot_be_joined_stays_apart(packs):
    """Too few variables, variables of several types, of scalars, and of rows."""
    table = tf.get_variable("table", initializer=np.ones((9, 2), np.float32))
    rows = tf.gather(table, [1, 2, 2])
    scalars = [tf.get_variable(f"scalar_{i}", initializer=1.0 + i) for i in range(6)]
    wide = [
        tf.get_variable(f"wide_{i}", initializer=np.full(3, 0.5 + i), dtype=tf.float64)
        for i in range(2)
    ]
    loss = tf.reduce_sum(tf.square(rows)) + sum(tf.square(s) for s in scalars)
    loss += sum(tf.cast(tf.reduce_sum(tf.square(w)), tf.float32) for w in wide)
    train = tf.train.AdamOptimizer(RATE).minimize(loss)
    assert_same(values_after(3, train, True), values_after(3, train, False))
    assert not packs


def test_variables_of_several_types_are_joined_by_type(packs):
    loss = 0.0
    for dtype in (tf.float32, tf.float64):
        for i in range(4):
            first = np.linspace(0.1, 1, 3 + i)
            variable = tf.get_variable(f"{dtype.name}_{i}", initializer=tf.constant(first, dtype))
            loss += tf.cast(tf.reduce_sum(variable**3), tf.float32)
    train = tf.train.MomentumOptimizer(RATE, 0.9).minimize(loss)
    expected = values_after(3, train, False)
    found = values_after(3, train, True)
    assert [v.dtype for v in found] == [v.dtype for v in expected]
    assert_same(found, expected)
    assert len(set(map(variables_of, packs))) == 4  # nothing else wants the variables


def test_nothing_is_joined_on_a_cpu():
    train = tf.train.AdamOptimizer(RATE).minimize(Network().loss)
    with session(True) as sess:
        sess.run(train)
    assert joined_updates.joined_updates(Any, {}, "cpu") == []  # type: ignore[arg-type]


def test_flat_packs_come_after_those_of_rows():
    executable = Executable([], [])
    executable.packs = [[0, 1]]
    executable.flat_packs = [([2], ((3,),))]
    assert executable.all_packs == [([0, 1], None), ([2], ((3,),))]


def test_parts_are_what_was_joined():
    values = [np.arange(6.0).reshape(2, 3), np.arange(4.0), np.full((1, 1), 7.0)]
    shapes = tuple(value.shape for value in values)
    for found, value in zip(parts_of(end_to_end(values), shapes), values, strict=True):
        np.testing.assert_array_equal(np.asarray(found), value)
