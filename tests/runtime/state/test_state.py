"""Variables in steps: a defined order, transactions, in-place updates, concurrency."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.interpret import verification
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, run_both, session

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


def test_an_uninitialised_variable_is_named_with_its_line():
    v = tf.Variable(1.0, name="weights")
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            with pytest.raises(tf.errors.FailedPreconditionError, match="weights") as e:
                sess.run(v + 1.0)
            assert e.value.op is v.op
            assert __file__ in str(e.value)
            sess.run(v.initializer)
            assert sess.run(v + 1.0) == 2.0


@TIERS
def test_operations_on_a_variable_happen_in_the_order_of_construction(level):
    v = tf.Variable(1.0)
    before = v + 0.0
    doubled = v.assign(v * 2.0)
    between = v + 0.0
    bumped = v.assign_add(3.0)
    after = v + 0.0
    with session(level) as sess:
        sess.run(v.initializer)
        # Whatever the order of the fetches.
        values = sess.run([after, bumped, between, doubled, before])
        assert values == [5.0, 5.0, 2.0, 2.0, 1.0]
        assert sess.run(v) == 5.0


@TIERS
def test_control_edges_overrule_the_order_of_construction(level):
    v = tf.Variable(1.0)
    read = tf.identity(v)
    bump = v.assign_add(1.0)
    read.op._add_control_input(bump.op)
    with session(level) as sess:
        sess.run(v.initializer)
        assert sess.run(read) == 2.0


@TIERS
def test_the_output_of_an_update_is_the_value_it_left(level):
    v = tf.Variable(0.0)
    first = v.assign(1.0)
    second = v.assign(2.0)
    late_use = first + 10.0
    with session(level) as sess:
        sess.run(v.initializer)
        assert sess.run([first, second, late_use, v]) == [1.0, 2.0, 11.0, 2.0]


@TIERS
def test_a_failed_step_changes_no_variable(level):
    a, b = tf.Variable([1.0, 2.0]), tf.Variable(tf.zeros([4, 2]))
    x = tf.placeholder(tf.float32, [])
    rows = tf.placeholder(tf.int32, [None])
    dense = a.assign_add([x, x])
    sparse = tf.scatter_add(b, rows, tf.ones([2, 2]))
    checked = tf.check_numerics(x, "x is bad")
    step = tf.group(dense, sparse, checked)
    good, nan, bad_row = {x: 1.0, rows: [0, 3]}, {x: np.nan, rows: [0, 3]}, {x: 1.0, rows: [0, 4]}
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step, good)
        expected = sess.run([a, b])
        with pytest.raises(tf.errors.InvalidArgumentError, match="x is bad") as e:
            sess.run(step, nan)
        assert e.value.op is checked.op and __file__ in str(e.value)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)"
        ):
            sess.run(step, bad_row)
        for found, wanted in zip(sess.run([a, b]), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        sess.run(step, good)  # and the session goes on
        np.testing.assert_array_equal(sess.run(a), [3.0, 4.0])


@TIERS
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_one_value_for_several_variables_is_kept_back_wherever_the_check_stands(level, place):
    a, b, c = (tf.Variable([1.0, 2.0]) for _ in range(3))
    x = tf.placeholder(tf.float32, [])

    def check(where):
        return [tf.check_numerics(x, "x is bad")] if where == place else []

    ops = check("before")
    new = a * 2.0 + tf.ones([2])
    ops += [a.assign(new), b.assign(new)]
    ops += check("between")
    ops += [c.assign(new * tf.identity(a))]
    ops += check("after")
    step = tf.group(*ops)
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step, {x: 1.0})
        wanted = [[3.0, 5.0], [3.0, 5.0], [9.0, 25.0]]
        np.testing.assert_array_equal(sess.run([a, b, c]), wanted)
        with pytest.raises(tf.errors.InvalidArgumentError, match="x is bad"):
            sess.run(step, {x: np.inf})
        np.testing.assert_array_equal(sess.run([a, b, c]), wanted)


@TIERS
def test_a_gather_out_of_range_in_a_training_step_leaves_the_table(level):
    table = tf.Variable(tf.ones([5, 3]))
    ids = tf.placeholder(tf.int32, [None])
    loss = tf.reduce_sum(tf.gather(table, ids))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step, {ids: [1, 1]})
        before = sess.run(table)
        np.testing.assert_array_equal(before[1], [0.0, 0.0, 0.0])
        for bad in ([5], [-1]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
                sess.run(step, {ids: bad})
        np.testing.assert_array_equal(sess.run(table), before)


def test_a_check_after_the_update_undoes_it_too():
    table = tf.Variable(tf.zeros([3, 1]))
    x = tf.placeholder(tf.float32, [1, 1])
    update = tf.scatter_update(table, [1], x)
    with tf.control_dependencies([update]):
        checked = tf.check_numerics(table.read_value(), "the table went bad")
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(table.initializer)
            sess.run(checked, {x: [[7.0]]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="went bad"):
                sess.run(checked, {x: [[np.inf]]})
            np.testing.assert_array_equal(sess.run(table), [[0], [7], [0]])


@TIERS
def test_an_assignment_of_the_wrong_shape_is_refused(level):
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, None)
    assign = tf.assign(v, x)
    loose = tf.assign(v, x, validate_shape=False)
    with session(level) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3,\).*\(2,\)"):
            sess.run(assign, {x: [1.0, 2.0, 3.0]})
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])
        np.testing.assert_array_equal(sess.run(loose, {x: [1.0, 2.0, 3.0]}), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Assign"):
        tf.assign(v, tf.zeros([3]))


@TIERS
def test_a_variable_whose_shape_changes_is_computed_with_its_new_shape(level):
    v = tf.Variable(tf.zeros([2]), validate_shape=False)
    x = tf.placeholder(tf.float32, None)
    assign = tf.assign(v, x, validate_shape=False)
    total = tf.reduce_sum(tf.exp(v))
    with session(level) as sess:
        sess.run(v.initializer)
        assert sess.run(total) == 2.0
        sess.run(assign, {x: np.zeros((3, 2))})
        assert sess.run(total) == 6.0


@TIERS
def test_what_a_caller_holds_never_changes_under_it(level):
    v = tf.Variable(tf.zeros([1000]))
    x = tf.placeholder(tf.float32, [1000])
    bump, put = v.assign_add(tf.ones([1000])), v.assign(x)
    with session(level) as sess:
        sess.run(v.initializer)
        fed = np.full(1000, 5.0, np.float32)
        sess.run(put, {x: fed})
        fed[:] = 99.0  # the variable must not see it
        held = [sess.run(v), sess.run(bump), sess.run(v.read_value())]
        for _ in range(5):
            sess.run(bump)
        assert [h[0] for h in held] == [5.0, 6.0, 6.0]
        held[1][:] = -1.0
        assert sess.run(v)[0] == 11.0


@TIERS
def test_concurrent_updates_are_not_lost(level):
    counter = tf.Variable(0, dtype=tf.int64)
    table = tf.Variable(tf.zeros([10], tf.int64))
    row = tf.placeholder(tf.int32, [1])
    step = tf.group(counter.assign_add(1), tf.scatter_add(table, row, tf.ones([1], tf.int64)))
    failures = []
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())

        def work(number):
            try:
                for i in range(100):
                    sess.run(step, {row: [(number + i) % 10]})
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        total, rows = sess.run([counter, table])
    assert total == 800
    np.testing.assert_array_equal(rows, 80)


def test_a_step_sees_all_effects_of_another_or_none():
    """Two variables are always updated together; no reader sees one without the other."""
    a, b = tf.Variable(0.0), tf.Variable(0.0)
    move = tf.group(a.assign_add(1.0), b.assign_sub(1.0))
    both = [tf.identity(a), tf.identity(b)]
    torn = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        stop = threading.Event()

        def read():
            while not stop.is_set():
                x, y = sess.run(both)
                if x + y != 0.0:
                    torn.append((x, y))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for _ in range(500):
            sess.run(move)
        stop.set()
        for reader in readers:
            reader.join()
        assert sess.run(both) == [500.0, -500.0]
    assert not torn


def test_a_shared_name_is_one_variable():
    from runnel.ops.state import assign_op, variable_op

    a = variable_op(shape=[], dtype=tf.float32, shared_name="shared", name="a")
    b = variable_op(shape=[], dtype=tf.float32, shared_name="shared", name="b")
    assert run_both(tf.identity(b), init=assign_op(a, 3.0)) == 3.0


def test_a_compiled_update_is_in_place():
    v = tf.Variable(tf.zeros([1 << 20]))
    bump = v.assign_add(tf.ones([1 << 20])).op
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        sess.run(bump)
        (cell,) = sess._task._containers[""].values()
        pointers = set()
        for _ in range(4):
            pointers.add(cell.value.unsafe_buffer_pointer())
            sess.run(bump)
        assert len(pointers) == 1


def test_both_kinds_of_variable_agree():
    results = []
    for use_resource in (False, True):
        with tf.Graph().as_default():
            v = tf.Variable([1.0, 2.0, 3.0], use_resource=use_resource)
            y = tf.reduce_sum(tf.gather(v, [0, 0, 2]) * v)
            step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(y)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(5):
                    sess.run(step)
                results.append(sess.run([v, y]))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)


@TIERS
def test_two_operations_that_share_a_name_are_one_variable_within_a_step(level):
    from runnel.ops.state import assign_op, variable_op

    a, b = (
        variable_op(shape=[], dtype=tf.float32, shared_name="shared", name=name) for name in "ab"
    )
    init = assign_op(a, 3.0)
    values = [assign_op(a, 5.0), tf.identity(b), tf.assign_add(b, 1.0), tf.identity(a)]
    with session(level) as sess:
        sess.run(init)
        assert sess.run(values) == [5.0, 5.0, 6.0, 6.0]
        assert sess.run([a, b]) == [6.0, 6.0]


@TIERS
def test_a_step_that_fails_does_not_resize_a_variable(level):
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    x = tf.placeholder(tf.float32, [1])
    grow = tf.assign(v, tf.concat([v, x], 0), validate_shape=False)
    step = [grow, tf.check_numerics(x, "x is bad")]
    with session(level) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="x is bad"):
            sess.run(step, {x: [np.nan]})
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])
        sess.run(step, {x: [3.0]})
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0, 3.0])


@TIERS
def test_a_variable_of_known_shape_that_is_made_another_is_computed_with(level, monkeypatch):
    monkeypatch.setattr(verification, "enabled", False)  # static shapes are no longer true
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, None)
    y = v * 2.0
    resize = tf.assign(v, x, validate_shape=False)
    with session(level) as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(y), [2.0, 4.0])
        for value in ([1.0, 2.0, 3.0], [4.0, 5.0]):
            sess.run(resize, {x: value})
            np.testing.assert_array_equal(sess.run(y), 2 * np.array(value))


@TIERS
def test_a_scattered_update_of_a_value_assigned_in_the_same_step(level):
    v = tf.Variable(tf.zeros([3]))
    put = v.assign([1.0, 2.0, 3.0])
    add = tf.scatter_add(v, [0, 2], [10.0, 10.0])
    with session(level) as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run([put, add])[1], [11.0, 2.0, 13.0])


def test_a_compiled_step_is_traced_once_however_its_state_came_about():
    """From NumPy by an initialiser, from an interpreted step, or from the compiled step itself."""
    from unittest import mock

    from runnel.runtime.compile.segment_trace import SegmentTrace

    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    step = v.assign(tf.where(v > 0.0, v * 2.0, x))
    trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with (
        mock.patch.object(SegmentTrace, "run", autospec=True, side_effect=SegmentTrace.run) as t,
        session(COMPILED) as sess,
    ):
        sess.run(v.initializer)
        traced = t.call_count
        for _ in range(4):
            sess.run(step, {x: [1.0, 1.0]})
        sess.run(step, {x: [1.0, 1.0]}, trace, tf.RunMetadata())
        sess.run(v.initializer)
        sess.run(step, {x: [1.0, 1.0]})
        assert t.call_count == traced + 1


def test_a_step_that_cannot_be_compiled_stays_interpreted(caplog):
    """A kernel that XLA cannot take must not stop a training that has run so far."""
    from unittest import mock

    from runnel.runtime.segment import tier_choice

    op_def = tf.register_op("OnlyNumpyCan", inputs="x: float", outputs="y: float")
    op_def.shape(lambda x: x.dims)

    @op_def.kernel
    def _(xp, x):
        if xp is not np:
            raise NotImplementedError("not in XLA")
        return x * 2

    v = tf.Variable([1.0])
    step = v.assign(op_def(v))
    with (
        mock.patch.multiple(
            tier_choice,
            _SHARE=0,
            _STALL_SECONDS=0,
            _DISPATCH_SECONDS=0,
            _DISPATCH_SECONDS_PER_ARRAY=0,
        ),
        tf.Session() as sess,
    ):
        sess.run(v.initializer)
        for i in range(1, 6):
            assert sess.run(step) == [2.0**i]
            await_compilations()
    assert len([r for r in caplog.records if "stays interpreted" in r.getMessage()]) == 1
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.OpError, match="not in XLA"):
            sess.run(step)
