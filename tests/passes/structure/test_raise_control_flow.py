"""Raising: what becomes one structured node, and what is left to the event-driven executor."""

import numpy as np
import pytest

import runnel as tf
from runnel.ops.control_flow import (
    CONTROL_FLOW,
    enter,
    exit,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.passes.structure.counters import counters_of
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import (
    Conditional,
    Dynamic,
    Loop,
    nested_nodes,
    structure_of,
)


def raised(fetches, feeds=()):
    program = raise_control_flow(prune(fetches, [], feeds))
    check_program(program, "raising")
    for node in nested_nodes(program.nodes):
        for inner in structure_of(node).programs if structure_of(node) else ():
            check_program(inner, "raising")
    assert not any(node.op_def.name in CONTROL_FLOW for node in program.nodes)
    return program


def regions(program):
    """The programs of what runs dynamically, each as the types of its operations."""
    return [
        [node.op.type for node in s.program.nodes]
        for s in structures(program)
        if isinstance(s, Dynamic)
    ]


def structures(program):
    return [s for node in program.nodes if (s := structure_of(node)) is not None]


def test_a_loop_is_one_node():
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, _: i < 5, lambda i, s: (i + 1, s * x), [0, 1.0])
    (loop,) = structures(raised([y], [x]))
    assert isinstance(loop, Loop)
    assert len(loop.variables) == 2
    assert loop.exits == (1,)
    assert loop.invariants == (0,)  # x, by the number that it has outside


def test_a_conditional_is_one_node_with_only_what_its_branches_need():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: tf.sin(x), lambda: -x)
    (found,) = structures(raised([y], [x]))
    assert isinstance(found, Conditional)
    assert [n.op.type for n in found.when_true.nodes if n.op.type != "Identity"] == ["Sin"]
    assert [n.op.type for n in found.when_false.nodes if n.op.type != "Identity"] == ["Neg"]


def test_a_branch_takes_what_an_earlier_conditional_on_its_predicate_gave():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    first = tf.cond(p, lambda: tf.sin(x), lambda: -x)
    second = tf.cond(p, lambda: x, lambda: first)
    assert len(structures(raised([second], [p, x]))) == 2


def test_what_only_one_branch_gives_is_optional():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    result = tf.cond(p, lambda: tf.sin(x) * x, lambda: x)
    program = raised(tf.gradients(tf.sin(result), x), [p, x])
    forward = next(node for node in program.nodes if structure_of(node) is not None)
    sides = zip(*(part.fetches for part in structure_of(forward).programs), strict=True)
    optional = [program.infos[value].optional for value in forward.outputs]
    assert optional == [None in side for side in sides]
    assert set(optional) == {False, True}


def test_nests_are_nested():
    x = tf.placeholder(tf.float32, [])

    def body(i, s):
        return i + 1, tf.cond(s > 3, lambda: s - x, lambda: tf.cond(x > 0, lambda: s, lambda: x))

    y = tf.while_loop(lambda i, _: i < 5, body, [0, x])[1]
    (loop,) = structures(raised([y], [x]))
    (outer,) = structures(loop.body)
    assert len(structures(outer.when_false)) == 1


def test_the_gradient_of_a_branch_is_a_second_conditional_that_uses_the_first():
    x = tf.placeholder(tf.float32, [])
    y = tf.sin(tf.cond(x > 0, lambda: tf.exp(tf.sin(x)), lambda: x))
    (gradient,) = tf.gradients(y, x)
    first, second = structures(raised([gradient], [x]))
    handed_over = [value for value in first.when_false.fetches if value is None]
    assert handed_over  # exp(sin(x)) is there in one branch only
    assert len(second.parameters) > 1


def test_effects_keep_their_order():
    v = tf.Variable(1.0, use_resource=True)
    p = tf.placeholder(tf.bool, [])
    once = tf.cond(p, lambda: v.assign_add(1.0), lambda: v.assign_add(10.0))
    with tf.control_dependencies([once]):
        between = v.read_value()
    with tf.control_dependencies([between]):
        twice = tf.cond(p, lambda: v.assign(v * 3.0), lambda: v.assign(v * 5.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([between, twice], {p: True}) == [2.0, 6.0]
        assert sess.run([between, twice], {p: False}) == [16.0, 80.0]


class TestDynamicRegions:
    def test_a_merge_of_branches_that_are_not_one_conditional(self):
        p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
        one, other = switch(tf.constant(1.0), p)[1], switch(tf.constant(2.0), q)[0]
        either = merge([one, other])[0]
        ((*_, last),) = regions(raised([either], [p, q]))
        assert last == "Merge"
        with tf.Session() as sess:
            assert sess.run(either, {p: True, q: True}) == 1.0

    def test_a_frame_without_a_condition(self):
        entered = enter(tf.constant(3.0), "frame", is_constant=True)
        assert regions(raised([exit(entered)])) == [["Enter", "Exit"]]

    def test_a_loop_whose_index_is_used(self):
        start = enter(tf.constant(0), "frame")
        merged, index = merge([start, start])
        three, one = (enter(tf.constant(n), "frame", is_constant=True) for n in (3, 1))
        stop, go_on = switch(merged, loop_cond(merged < three))
        following = next_iteration(go_on + one + index)
        merged.op._update_input(1, following)
        (region,) = regions(raised([exit(stop)]))
        assert region.count("Enter") == 3 and "LoopCond" in region

    def test_a_fetch_inside_a_branch(self):
        p = tf.placeholder(tf.bool, [])
        inside = switch(tf.constant(1.0), p)[1]
        assert regions(raised([tf.sin(inside)], [p])) == [["Switch", "Sin"]]

    def test_what_is_around_a_conditional_that_blocks_stays_outside(self):
        p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2, 2])
        one, other = (tf.FIFOQueue(1, tf.float32, [[2, 2]]) for _ in range(2))
        taken = tf.cond(p, one.dequeue, other.dequeue)
        result = tf.cond(p, lambda: tf.matmul(x, x), lambda: x) + tf.matmul(taken, x)
        program = raised([result], [p, x])
        assert [type(s).__name__ for s in structures(program)] == ["Dynamic", "Conditional"]
        (region,) = regions(program)
        assert "MatMul" not in region and region.count("QueueDequeueV2") == 2

    def test_two_that_block_are_two(self):
        p = tf.placeholder(tf.bool, [])
        queues = [tf.FIFOQueue(1, tf.float32, [[]]) for _ in range(4)]
        taken = [tf.cond(p, queues[i].dequeue, queues[i + 1].dequeue) for i in (0, 2)]
        assert len(regions(raised([taken[0] + taken[1]], [p]))) == 2

    def test_a_loop_that_blocks_leaves_the_other_as_it_is(self):
        queue = tf.FIFOQueue(9, tf.int32, [[]])
        blocks = tf.while_loop(lambda i: i < 3, lambda i: i + queue.dequeue(), [0])
        counts = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
        kinds = [type(s).__name__ for s in structures(raised([blocks, counts]))]
        assert sorted(kinds) == ["Dynamic", "Loop"]

    def test_the_gradient_of_a_branch_that_blocks_is_not_in_its_region(self):
        p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2, 2])
        queue = tf.FIFOQueue(9, tf.float32, [[2, 2]])
        y = tf.cond(p, lambda: queue.dequeue() * x, lambda: tf.sin(x))
        loss = tf.reduce_sum(tf.matmul(y, y))
        program = raised([loss, tf.gradients(loss, x)[0]], [p, x])
        found = regions(program)
        assert not any("MatMul" in region for region in found)
        assert ["QueueDequeueV2" in region for region in found] == [True] + [False] * len(found[1:])


@pytest.mark.parametrize(
    ("relation", "first", "limit", "step"),
    [
        (tf.less, 0, 7, 1),
        (tf.less, 0, 7, 3),
        (tf.less_equal, 1, 7, 2),
        (tf.greater, 9, 2, -2),
        (tf.greater_equal, 9, 1, -4),
        (tf.less, 5, 5, 1),
        (tf.greater, 0, 5, -1),
    ],
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_counters_say_how_often_a_loop_runs(relation, first, limit, step, mirrored):
    opposite = {
        tf.less: tf.greater,
        tf.less_equal: tf.greater_equal,
        tf.greater: tf.less,
        tf.greater_equal: tf.less_equal,
    }[relation]

    def goes_on(i, _):
        return opposite(limit, i) if mirrored else relation(i, limit)

    _, count = tf.while_loop(goes_on, lambda i, n: (i + step, n + 1), [first, 0])
    (loop,) = structures(raised([count]))
    counters = counters_of(loop)
    assert counters.exact
    (counter,) = counters.bounds
    with tf.Session() as sess:
        assert counter.iterations(first, limit) == sess.run(count)


def test_a_condition_on_data_bounds_only():
    x = tf.placeholder(tf.float32, [])
    loop_result = tf.while_loop(lambda s: s < x, lambda s: s * 2, [1.0], maximum_iterations=10)
    (loop,) = structures(raised([loop_result], [x]))
    counters = counters_of(loop)
    assert not counters.exact
    assert len(counters.bounds) == 1
    with tf.Session() as sess:
        np.testing.assert_equal(sess.run(loop_result, {x: 1e9}), 1024.0)
