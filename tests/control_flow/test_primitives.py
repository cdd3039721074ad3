"""The primitives: branches, frames, iterations and dead tensors, built by hand."""

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.ops.control_flow import (
    control_trigger_op,
    enter,
    exit,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from runnel.runtime.schedule.unit import RegionUnit


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def counting_loop(limit, frame="loop", start=0):
    """A loop that counts to ``limit``; returns (what leaves it, the tensor inside)."""
    entered = enter(tf.constant(start), frame)
    bound = enter(tf.convert_to_tensor(limit), frame, is_constant=True)
    one = enter(tf.constant(1), frame, is_constant=True)
    merged, _ = merge([entered, entered])
    stop, go_on = switch(merged, loop_cond(tf.less(merged, bound)))
    inside = tf.identity(go_on)
    merged.op._update_input(1, next_iteration(inside + one))
    return exit(stop), inside


def test_merge_takes_the_live_input_and_tells_which():
    x = tf.placeholder(tf.float32, [])
    when_false, when_true = switch(x, x > 0)
    merged = merge([tf.negative(when_false), tf.square(when_true)])
    with tf.Session() as sess:
        assert sess.run(merged, {x: 3.0}) == [9.0, 1]
        assert sess.run(merged, {x: -3.0}) == [3.0, 0]


@pytest.mark.parametrize("reverse", [False, True])
def test_merge_tells_which_where_both_branches_pass_on_the_same_value(reverse):
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    order = slice(None, None, -1 if reverse else None)
    merged = [merge(switch(value, y > 0)[order]) for value in (x, tf.constant(7), y)]
    with tf.Session() as sess:
        for given in (1.0, -1.0):
            for value, index in sess.run(merged, {x: [3, 4], y: given}):
                assert index == ((given > 0) ^ reverse)
                assert value.tolist() in ([3, 4], 7, given)


def test_a_dead_branch_is_never_executed():
    ran = []

    def note(value):
        ran.append(float(value))
        return value

    x = tf.placeholder(tf.float32, [])
    when_false, when_true = switch(x, x > 0)
    a = tf.py_func(note, [when_false], tf.float32)
    b = tf.py_func(note, [when_true * 10], tf.float32)
    merged, _ = merge([a, b])
    with tf.Session() as sess:
        sess.run(merged, {x: 2.0})
        sess.run(merged, {x: -2.0})
    assert ran == [20.0, -2.0]


def test_a_dead_fetch_is_an_error_that_names_it():
    x = tf.placeholder(tf.float32, [])
    _, when_true = switch(x, x > 0)
    y = tf.square(when_true, name="on_a_branch")
    with tf.Session() as sess:
        assert sess.run(y, {x: 2.0}) == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="'on_a_branch'.*not taken"):
            sess.run(y, {x: -2.0})


def test_dead_targets_do_not_run_and_are_no_error():
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    _, when_true = switch(x, x > 0)
    update = tf.assign_add(v, when_true).op
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(update, {x: -1.0})
        assert sess.run(v) == 0.0
        sess.run(update, {x: 2.0})
        assert sess.run(v) == 2.0


def test_a_control_edge_from_a_dead_operation_kills_but_not_a_control_trigger():
    x = tf.placeholder(tf.float32, [])
    _, when_true = switch(x, x > 0)
    with tf.control_dependencies([tf.identity(when_true)]):
        killed = tf.constant(1.0)
        trigger = control_trigger_op()
    with tf.control_dependencies([trigger]):
        lives = tf.constant(2.0)
    with tf.Session() as sess:
        assert sess.run([killed, lives], {x: 1.0}) == [1.0, 2.0]
        assert sess.run(lives, {x: -1.0}) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(killed, {x: -1.0})


def test_a_loop_runs_until_its_condition_fails():
    n = tf.placeholder(tf.int32, [])
    count, _ = counting_loop(n)
    with tf.Session() as sess:
        assert [sess.run(count, {n: k}) for k in (0, 1, 7, 500)] == [0, 1, 7, 500]


def test_two_loops_of_one_frame_run_together():
    a, _ = counting_loop(3, "same")
    b, _ = counting_loop(5, "same")
    with tf.Session() as sess:
        assert sess.run([a, b]) == [3, 5]


def test_a_loop_that_is_entered_dead_leaves_dead():
    x = tf.placeholder(tf.int32, [])
    when_false, when_true = switch(x, x > 10)
    entered = enter(when_true, "loop")
    bound = enter(tf.constant(20), "loop", is_constant=True)
    merged, _ = merge([entered, entered])
    stop, go_on = switch(merged, loop_cond(tf.less(merged, bound)))
    merged.op._update_input(1, next_iteration(go_on + go_on))
    result, index = merge([tf.negative(when_false), exit(stop)])
    with tf.Session() as sess:
        assert sess.run([result, index], {x: 11}) == [22, 1]
        assert sess.run([result, index], {x: 5}) == [-5, 0]


def test_tensors_of_different_frames_do_not_mix():
    _, inside = counting_loop(3)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="inside the loop 'loop'"):
            sess.run(inside)
        with pytest.raises(tf.errors.InvalidArgumentError, match="different loops.*Enter.*Exit"):
            sess.run(exit(inside + tf.identity(tf.constant(1))))


def test_exit_outside_a_loop_is_an_error():
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="not inside"):
        sess.run(exit(tf.constant(1)))


def test_a_cycle_that_is_no_loop_is_still_an_error():
    a = tf.identity(tf.constant(1.0), name="a")
    b = tf.identity(a, name="b")
    a.op._update_input(0, b)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="cycle"):
        sess.run(b)


def test_an_endless_loop_stops_at_its_deadline():
    never, _ = counting_loop(2**31 - 1)
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        options = tf.RunOptions(timeout_in_ms=50)
        with pytest.raises(tf.errors.DeadlineExceededError, match="timeout_in_ms"):
            sess.run([never, tf.assign(v, 2.0)], options=options)
        assert sess.run(v) == 1.0


def test_an_endless_loop_stops_when_its_session_is_closed():
    running = threading.Event()

    def note():
        running.set()
        return np.float32(0)

    with tf.control_dependencies([tf.py_func(note, [], tf.float32)]):
        limit = tf.identity(tf.constant(2**31 - 1))
    never, _ = counting_loop(limit)
    sess = tf.Session()
    failures = []

    def run():
        try:
            sess.run(never)
        except Exception as error:  # noqa: BLE001 (looked at below)
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert running.wait(10)
    sess.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(failures[0], tf.errors.CancelledError)


def runs_dynamically(schedule):
    return any(isinstance(unit, RegionUnit) for unit in schedule.units)


def test_what_is_well_formed_is_not_left_to_the_event_driven_executor(mode):
    from runnel.runtime.schedule.plan import StepPlan

    y = tf.constant(1.0) + 1
    with tf.Session() as sess:
        assert not runs_dynamically(sess._plan([y], [], []).schedule)
        assert isinstance(sess._plan([y], [], []), StepPlan)
        dynamic = sess._plan([counting_loop(3)[0]], [], []).schedule
        assert runs_dynamically(dynamic) == mode.startswith("event-driven")


def test_a_traced_step_has_an_entry_for_each_execution(mode):
    count, _ = counting_loop(3)
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(count, options=options, run_metadata=metadata)
    names = [stats.node_name for stats in metadata.step_stats.dev_stats[0].node_stats]
    if mode == "compiled":
        assert names == ["LoopCond/compiled"]
    else:
        suffix = "/compiled" if mode == "event-driven, compiled" else ""  # stretches
        assert names.count(f"Less{suffix}") == 4
        assert names.count(f"add{suffix}") == 3


def test_pred_of_a_switch_must_be_a_scalar():
    with pytest.raises(ValueError, match="pred must be a scalar"):
        switch(tf.constant(1.0), tf.constant([True, False]))
    p = tf.placeholder(tf.bool)
    out = merge(switch(tf.constant(1.0), p))[0]
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        sess.run(out, {p: [True, False]})


def test_an_inner_predicate_that_is_older_than_the_outer_one():
    """It is looked at only where the outer one comes out true, in some iterations of a loop."""

    def body(i, total):
        inner, outer = tf.equal(i % 3, 0), tf.equal(i % 2, 1)
        when_false, when_true = switch(total, outer)
        one, other = switch(when_true + 1.0, inner)
        merged, _ = merge([one * 10.0, other * 100.0])
        return i + 1, merge([when_false, merged])[0]

    for first in range(4):
        start = tf.constant(1.0)
        _, total = tf.while_loop(lambda i, _: i < 9, body, [tf.constant(first), start])
        expected = 1.0
        for i in range(first, 9):
            if i % 2 == 1:
                expected = (expected + 1.0) * (100.0 if i % 3 == 0 else 10.0)
        with tf.Session() as sess:
            np.testing.assert_allclose(sess.run(total), expected, rtol=1e-6)


def test_an_inner_loop_in_a_branch_that_takes_something_from_outside_of_it_first():
    """What enters first is alive in every iteration, the inner loop's variable in some."""

    def constant(value):
        return enter(tf.constant(value), "outer", is_constant=True)

    def loop(begin, limit, body):
        merged = [merge([value, value])[0] for value in begin]
        pred = loop_cond(tf.less(merged[0], limit))
        ends, going_on = zip(*[switch(value, pred) for value in merged])
        for value, following in zip(merged, body(*map(tf.identity, going_on))):
            value.op._update_input(1, next_iteration(following))
        return [exit(end) for end in ends]

    one, two = constant(1), constant(2)
    unit = constant(1.0)

    def body(i, total):
        limit = enter(constant(7.0), "inner", is_constant=True)
        step = enter(unit, "inner", is_constant=True)
        even, odd = switch(total, tf.equal(i % two, one))
        [counted] = loop([enter(odd * unit, "inner")], limit, lambda x: [x + step])
        return i + one, merge([even + unit, counted + unit + unit])[0]

    start = [enter(tf.constant(0), "outer"), enter(tf.constant(0.0), "outer")]
    _, total = loop(start, constant(5), body)
    expected = 0.0
    for i in range(5):
        expected = max(expected, 7.0) + 2.0 if i % 2 else expected + 1.0
    with tf.Session() as sess:
        assert sess.run(total) == expected


@pytest.mark.parametrize("limit,leaves", [(1, True), (3, False)])
def test_a_value_that_leaves_a_loop_in_several_iterations_is_an_error(mode, limit, leaves):
    _, inside = counting_loop(limit)
    left = exit(inside)
    with tf.Session() as sess:
        if leaves:
            assert sess.run(left) == 0
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="more than one iteration"):
                sess.run(left)
