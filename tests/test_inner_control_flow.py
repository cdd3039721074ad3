"""The primitives of control flow that programs import from inside TensorFlow."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from runnel.python.ops import control_flow_ops

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

TIERS = pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])


@TIERS
def test_one_of_several_ways_is_taken(tier):
    """Augmentations do so: each way has its own switch, and one merge joins them."""
    x, chosen = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    ways = [lambda t: t + 1, lambda t: t * 10, tf.negative]
    taken = [way(control_flow_ops.switch(x, tf.equal(chosen, i))[1]) for i, way in enumerate(ways)]
    found = control_flow_ops.merge(taken)
    assert found[0] is found.output and found[1] is found.value_index
    with session(tier) as sess:
        for i, expected in enumerate([[4, 6], [30, 50], [-3, -5]]):
            y, place = sess.run(found, {x: [3, 5], chosen: i})
            np.testing.assert_array_equal(y, expected)
            assert place == i


def test_values_are_converted_and_both_sides_have_names():
    off, on = sides = control_flow_ops.switch([1, 2], True, name="choice")
    assert sides.output_false is off and sides.output_true is on
    assert on.op.name == "choice" and on.op.type == "Switch"
    assert control_flow_ops.switch(1, True, dtype=tf.int64)[0].dtype == tf.int64
    assert control_flow_ops.merge([off, on]).output.dtype == tf.int32


@pytest.mark.parametrize("flag", [True, False])
def test_sparse_tensors_and_rows_go_through_in_their_parts(flag):
    pred = tf.placeholder(tf.bool, [])
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [5.0, 7.0], [2, 2])
    rows = tf.IndexedSlices(tf.constant([[5.0, 6.0]]), tf.constant([1]))
    joined = []
    for value in (sparse, rows):
        off, on = control_flow_ops.switch(value, pred)
        assert type(off) is type(on) is type(value)
        off = type(value)(**{**_parts(off), "values": off.values * 2.0})
        joined.append(control_flow_ops.merge([off, on]))
    with tf.Session() as sess:
        (got_sparse, first), (got_rows, second) = sess.run(joined, {pred: flag})
    times = 1 if flag else 2
    assert first == second == int(flag)
    np.testing.assert_array_equal(got_sparse.values, np.float32([5, 7]) * times)
    np.testing.assert_array_equal(got_sparse.indices, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(got_rows.values, np.float32([[5, 6]]) * times)
    assert got_rows.dense_shape is None


def _parts(value):
    return {name: getattr(value, name) for name in ("values", "indices", "dense_shape")}


def test_a_merge_takes_inputs_of_one_kind():
    rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    with pytest.raises(ValueError, match="is None"):
        control_flow_ops.merge([tf.constant(1), None])
    with pytest.raises(ValueError, match="input 1 must have the same structure"):
        control_flow_ops.merge([rows, tf.constant([1.0])])
    with pytest.raises(TypeError, match="one is a IndexedSlices and the other a SparseTensor"):
        control_flow_ops.merge([rows, tf.SparseTensor([[0]], [1.0], [2])])
    with pytest.raises(ValueError, match="2 and 3 elements"):
        control_flow_ops.merge(
            [rows, tf.IndexedSlices(rows.values, rows.indices, tf.constant([2]))]
        )


def test_operations_tell_what_they_are_in():
    util = importlib.import_module("runnel.python.ops.control_flow_util")
    seen = []

    def body(i):
        inside = tf.cond(i > 1, lambda: _noted(seen, i + 1), lambda: i + 2)
        return inside

    outside = tf.while_loop(lambda i: i < 5, body, [tf.constant(0)])
    [branch] = seen
    assert util.IsInCond(branch.op) and util.IsInWhileLoop(branch.op)
    context = branch.op.control_flow_context
    loop = util.GetContainingWhileContext(context)
    assert util.GetContainingCondContext(context) is context and loop is not context
    assert util.GetContainingCondContext(loop) is None
    assert util.GetContainingWhileContext(context, stop_ctxt=context) is context
    assert util.IsLoopExit(outside.op) and not util.IsInWhileLoop((outside + 1).op)
    kinds = [util.IsSwitch, util.IsMerge, util.IsLoopEnter, util.IsLoopExit]
    operations = tf.get_default_graph().get_operations()
    assert all(any(kind(op) for op in operations) for kind in kinds)
    assert util.GetContainingXLAContext(context) is None


def _noted(seen, tensor):
    seen.append(tensor)
    return tensor
