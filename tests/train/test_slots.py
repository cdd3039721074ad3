"""Slots: their names, their shapes, their places."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.train.slots import create_slot, create_slot_with_initializer, create_zeros_slot
from tests.both_tiers import run_both

INITIAL = np.array([[1.0, 2.0]], np.float32)


def test_a_slot_is_named_after_its_variable_and_numbered_when_there_are_several():
    with tf.variable_scope("layer"):
        v = tf.get_variable("v", initializer=INITIAL)
    names = [create_zeros_slot(v, "Momentum").op.name for _ in range(3)]
    assert names == ["layer/v/Momentum", "layer/v/Momentum_1", "layer/v/Momentum_2"]


def test_a_slot_lies_in_the_scope_where_it_is_made():
    v = tf.get_variable("v", initializer=INITIAL)
    with tf.variable_scope("train"):
        assert create_zeros_slot(v, "m").op.name == "train/v/m"


def test_a_slot_is_of_the_kind_of_its_variable():
    for resource in (False, True):
        v = tf.Variable(INITIAL, use_resource=resource)
        slot = create_zeros_slot(v, "m")
        assert slot.op.type == v.op.type and slot.shape == v.shape and slot.dtype == v.dtype
        assert not slot.trainable
        assert slot.op.colocation_groups() == v.op.colocation_groups()


def test_what_a_slot_begins_with():
    v = tf.Variable(INITIAL)
    slots = [
        create_zeros_slot(v, "zeros"),
        create_zeros_slot(v, "wide", dtype=tf.float64),
        create_slot(v, tf.constant([3.0]), "tensor"),
        create_slot(v, INITIAL * 2, "array"),
        create_slot_with_initializer(v, tf.ones_initializer(), [3], tf.int32, "ones"),
    ]
    found = run_both([s.value() for s in slots], init=tf.global_variables_initializer())
    expected = [INITIAL * 0, np.zeros((1, 2)), [3.0], INITIAL * 2, np.ones(3, np.int32)]
    for given, wanted in zip(found, expected):
        np.testing.assert_array_equal(given, wanted)
    assert found[1].dtype == np.float64


def test_a_variable_of_unknown_shape_has_slots_of_the_shape_that_it_begins_with():
    shape = tf.placeholder(tf.int32, [2])
    v = tf.Variable(tf.zeros(shape), validate_shape=False)
    slot = create_zeros_slot(v, "m")
    ones = create_slot_with_initializer(v, tf.ones_initializer(), v.shape, tf.float32, "ones")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer(), {shape: [2, 3]})
        assert sess.run(slot).shape == (2, 3)
        np.testing.assert_array_equal(sess.run(ones), np.ones((2, 3)))


def test_a_variable_of_unknown_shape_is_trained():
    shape = tf.placeholder(tf.int32, [1])
    v = tf.Variable(tf.ones(shape), validate_shape=False)
    train = tf.train.MomentumOptimizer(0.25, 0.9).minimize(tf.reduce_sum(v * v))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer(), {shape: [3]})
        sess.run(train)
        np.testing.assert_allclose(sess.run(v), [0.5, 0.5, 0.5])


def test_a_partitioner_of_the_scope_does_not_cut_slots():
    v = tf.get_variable("v", initializer=np.zeros((4, 2), np.float32))
    with tf.variable_scope("train", partitioner=tf.fixed_size_partitioner(2)):
        slot = create_zeros_slot(v, "m")
        assert isinstance(slot, tf.Variable) and slot.shape.as_list() == [4, 2]
        assert tf.get_variable_scope().partitioner is not None


def test_a_scope_that_reuses_has_no_slots_to_give():
    v = tf.get_variable("v", initializer=INITIAL)
    create_zeros_slot(v, "m")
    with (
        tf.variable_scope(tf.get_variable_scope(), reuse=True),
        pytest.raises(ValueError, match="Variable v/m_1/ does not exist"),
    ):
        create_zeros_slot(v, "m")


def test_every_initializer_of_slots_takes_a_shape_that_is_known_when_the_step_runs():
    given = tf.placeholder(tf.float32)
    v = tf.Variable(given, validate_shape=False)
    optimizers = [
        tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.5),
        tf.train.RMSPropOptimizer(0.1),
        tf.train.MomentumOptimizer(0.1, 0.9),
    ]
    for optimizer in optimizers:
        optimizer.apply_gradients([(tf.ones_like(v), v)])
    names = ("accumulator", "rms", "momentum")
    slots = [o.get_slot(v, name) for o, name in zip(optimizers, names, strict=True)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer(), {given: np.zeros((2, 3))})
        for found, wanted in zip(sess.run(slots), (0.5, 1.0, 0.0), strict=True):
            np.testing.assert_array_equal(found, np.full((2, 3), wanted, np.float32))
