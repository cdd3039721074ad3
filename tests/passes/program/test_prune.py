"""Pruning: what a step runs, given what it fetches and what it is fed, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.ops.control_flow import enter, exit, loop_cond, merge, next_iteration, switch
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune


def pruned(fetches, feeds=(), targets=(), done=()):
    program = prune(fetches, targets, feeds, done)
    check_program(program, "pruning")
    return program


def names(program):
    return [node.op.name for node in program.nodes]


def value_of(program, tensor):
    """The number that ``tensor`` has as an output of its node."""
    (node,) = [node for node in program.nodes if node.op is tensor.op]
    return node.outputs[tensor.value_index]


def node_of(program, thing):
    op = getattr(thing, "op", thing)
    (node,) = [node for node in program.nodes if node.op is op]
    return node


# What runs ------------------------------------------------------------------------------------


def test_only_what_a_fetch_needs_runs_in_the_order_of_construction():
    a = tf.constant(1.0, name="a")
    tf.sin(a, name="unused")
    b = tf.constant(2.0, name="b")
    c = tf.add(b, a, name="c")
    program = pruned([c])
    assert names(program) == ["a", "b", "c"]
    assert program.fetches == (value_of(program, c),)
    assert node_of(program, c).inputs == (value_of(program, b), value_of(program, a))


def test_what_leads_to_a_feed_does_not_run():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.sin(x, name="y")
    z = tf.cos(y, name="z")
    program = pruned([z], feeds=[y])
    assert names(program) == ["z"]
    assert node_of(program, z).inputs == (program.feeds[y],)


def test_a_fed_tensor_that_is_fetched_needs_nothing():
    y = tf.sin(tf.constant(1.0))
    program = pruned([y, y], feeds=[y])
    assert not program.nodes
    assert program.fetches == (program.feeds[y],) * 2


def test_a_feed_that_nobody_needs_is_a_value_all_the_same():
    x, unused = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [3])
    program = pruned([x + 1.0], feeds=[x, unused])
    assert program.infos[program.feeds[unused]].dims == (3,)


def test_of_several_outputs_one_may_be_fed_and_another_fetched():
    first, second = tf.split(tf.constant([1.0, 2.0]), 2)
    total = first + second
    program = pruned([total, second], feeds=[first])
    split = node_of(program, first)
    assert node_of(program, total).inputs == (program.feeds[first], split.outputs[1])
    assert program.feeds[first] != split.outputs[0], "what it computes is nobody's"
    assert program.fetches[1] == split.outputs[1]


def test_a_target_runs_though_its_output_is_fed():
    v = tf.Variable(1.0)
    assigned = tf.assign(v, 5.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([assigned, assigned.op], {assigned: 7.0})[0] == 7.0
        assert sess.run(v) == 5.0
    program = pruned([assigned], feeds=[assigned], targets=[assigned.op])
    assert node_of(program, assigned).outputs != program.fetches


def test_the_same_target_and_fetch_run_once():
    y = tf.sin(tf.constant(1.0, name="x"), name="y")
    assert names(pruned([y, y], targets=[y.op, y.op])) == ["x", "y"]


def test_a_deep_graph_is_no_recursion():
    y = tf.constant(0.0)
    for _ in range(5000):
        y = tf.identity(y)
    assert len(pruned([y]).nodes) == 5001


# Control edges --------------------------------------------------------------------------------


def test_a_control_input_runs_and_so_does_what_it_needs():
    x = tf.constant(1.0, name="x")
    first = tf.sin(x, name="first")
    with tf.control_dependencies([first]):
        second = tf.constant(2.0, name="second")
    program = pruned([second])
    assert names(program) == ["x", "first", "second"]
    assert node_of(program, second).control == (node_of(program, first),)


def test_nobody_waits_for_a_fed_placeholder():
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([x]):
        y = tf.constant(1.0, name="y")
    program = pruned([y], feeds=[x])
    assert names(program) == ["y"]
    assert not node_of(program, y).control


def test_what_is_waited_for_runs_though_its_output_is_fed():
    v = tf.Variable(1.0)
    assigned = tf.assign(v, 5.0)
    with tf.control_dependencies([assigned.op]):
        y = tf.constant(1.0, name="y")
    program = pruned([y], feeds=[assigned])
    assert node_of(program, y).control == (node_of(program, assigned),)


def test_a_control_edge_against_the_order_of_construction_decides():
    a, b, c = (tf.constant(float(i), name="abc"[i]) for i in range(3))
    a.op._add_control_input(c.op)
    program = pruned([a, b])
    assert names(program) == ["b", "c", "a"]
    assert node_of(program, a).control == (node_of(program, c),)


def test_an_input_replaced_by_a_later_one_decides_the_order():
    a = tf.constant(1.0, name="a")
    b = tf.sin(a, name="b")
    c = tf.constant(2.0, name="c")
    b.op._update_input(0, c)
    assert names(pruned([b])) == ["c", "b"]


def test_edges_in_a_circle_are_refused_by_name_unless_a_feed_cuts_them():
    a = tf.sin(tf.constant(1.0), name="a")
    b = tf.cos(a, name="b")
    a.op._update_input(0, b)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cycle") as caught:
        prune([b], [], [])
    assert "'a'" in caught.value.message and "'b'" in caught.value.message
    assert names(pruned([b], feeds=[a])) == ["b"]


def test_what_has_run_in_an_earlier_part_of_the_step_is_not_waited_for():
    x = tf.placeholder(tf.float32, [], name="x")
    first = tf.sin(x, name="first")
    with tf.control_dependencies([first]):
        second = tf.cos(x, name="second")
    program = pruned([second], feeds=[x], done=[first.op])
    assert names(program) == ["second"]
    assert not node_of(program, second).control


# Loops ----------------------------------------------------------------------------------------


def counted_loop(limit=5):
    """i = 0; while i < limit: i += 1, of the primitives."""
    start = enter(tf.constant(0, name="start"), "frame")
    merged, _ = merge([start, start])
    bound, one = (enter(tf.constant(n), "frame", is_constant=True) for n in (limit, 1))
    stop, go_on = switch(merged, loop_cond(merged < bound))
    following = next_iteration(go_on + one)
    merged.op._update_input(1, following)
    return merged, go_on, following, exit(stop)


def test_a_loop_is_in_order_but_for_the_edge_that_closes_it():
    merged, _, following, result = counted_loop()
    program = pruned([result])
    order = [node.op for node in program.nodes]
    assert order.index(merged.op) < order.index(following.op)
    assert node_of(program, merged).inputs[1] == value_of(program, following)
    for node in program.nodes:
        for tensor in node.op.inputs:
            if tensor is not following:
                assert order.index(tensor.op) < order.index(node.op)


@pytest.mark.parametrize("where", ["following", "go_on"])
def test_a_feed_inside_a_loop_cuts_it_there(where):
    merged, go_on, following, result = counted_loop()
    fed = {"following": following, "go_on": go_on}[where]
    program = pruned([result], feeds=[fed])
    ran = {node.op for node in program.nodes}
    if where == "following":
        assert following.op not in ran
        assert node_of(program, merged).inputs[1] == program.feeds[fed]
    else:
        (add,) = [n for n in program.nodes if n.op.type in ("Add", "AddV2")]
        assert add.inputs[0] == program.feeds[fed]
        assert merged.op in ran, "the other side of the Switch is needed"


# Static shapes --------------------------------------------------------------------------------


def test_shapes_that_follow_from_a_value_are_forgotten_where_another_is_fed():
    shape = tf.constant([2, 3])
    x = tf.placeholder(tf.float32, [6])
    y = tf.reshape(x, shape)
    z = tf.sin(y)
    other = tf.sin(x)
    fetches = [y, z, other]
    assert [pruned(fetches, [x]).infos[v].dims for v in pruned(fetches, [x]).fetches] == [
        (2, 3),
        (2, 3),
        (6,),
    ]
    program = pruned(fetches, [x, shape])
    assert [program.infos[value].dims for value in program.fetches] == [None, None, (6,)]
    with tf.Session() as sess:
        assert sess.run(z, {x: np.zeros(6), shape: [3, 2]}).shape == (3, 2)


def test_shapes_are_forgotten_around_a_loop():
    shape = tf.constant([2, 3])
    x = tf.placeholder(tf.float32, [6])

    def body(i, y):
        return i + 1, y + 1.0

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.reshape(x, shape)])
    program = pruned([y], [x, shape])
    assert program.infos[program.fetches[0]].dims is None


@pytest.mark.parametrize("fed", ["placeholder", "float"])
def test_what_cannot_have_decided_a_shape_leaves_shapes_known(fed):
    if fed == "placeholder":
        x = tf.placeholder(tf.int32, [3])
        y = x + 1
    else:
        x = tf.constant([1.0, 2.0, 3.0])
        y = tf.sin(x)
    program = pruned([y], [x])
    assert program.infos[program.fetches[0]].dims == (3,)


# Against a plain reading of the rules -----------------------------------------------------------


def by_definition(fetches, targets, feeds):
    """The operations that run: the least set that the rules of a step demand."""
    fed = set(feeds)
    absent = {t.op for t in fed if t.op.type == "Placeholder"}

    def demanded(op):
        return {t.op for t in op.inputs if t not in fed} | (set(op.control_inputs) - absent)

    ran = {t.op for t in fetches if t not in fed} | set(targets)
    while True:
        more = ran.union(*map(demanded, ran)) if ran else ran
        if more == ran:
            return ran
        ran = more


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_run_what_the_rules_demand_in_an_order_that_agrees_with_every_edge(seed):
    rng = np.random.default_rng(seed)
    tensors = [tf.placeholder(tf.float32, []) for _ in range(3)]
    for _ in range(40):
        chosen = rng.choice(len(tensors), rng.integers(1, 4))
        with tf.control_dependencies([tensors[i].op for i in rng.choice(len(tensors), 2)]):
            if rng.random() < 0.3:
                tensors += tf.split(tf.stack([tensors[i] for i in chosen] * 2), 2)
                tensors[-2:] = [tf.reduce_sum(t) for t in tensors[-2:]]
            else:
                tensors.append(tf.add_n([tensors[i] for i in chosen]))
    ops = tf.get_default_graph().get_operations()
    for _ in range(3):  # an edge from a later operation, where it closes no circle
        late = ops[rng.integers(len(ops) // 2, len(ops))]
        ancestors = by_definition([], [late], [])
        free = [op for op in ops if op not in ancestors and op.id < late.id]
        if free and late.type != "Placeholder":
            free[rng.integers(len(free))]._add_control_input(late)
    fetches = [tensors[i] for i in rng.choice(len(tensors), 3)]
    targets = [ops[i] for i in rng.choice(len(ops), 2) if ops[i].type != "Placeholder"]
    feeds = {*tensors[:3], *(tensors[i] for i in rng.choice(len(tensors), 4))}
    program = pruned(fetches, feeds, targets)
    order = {node.op: i for i, node in enumerate(program.nodes)}
    assert order.keys() == by_definition(fetches, targets, feeds)
    numbers = {t: n for node in program.nodes for t, n in zip(node.op.outputs, node.outputs)}
    numbers |= program.feeds
    for node in program.nodes:
        assert node.inputs == tuple(numbers[t] for t in node.op.inputs)
        awaited = [t.op for t in node.op.inputs if t not in feeds]
        awaited += [c for c in node.op.control_inputs if c in order]
        assert all(order[source] < order[node.op] for source in awaited)
    assert program.fetches == tuple(numbers[t] for t in fetches)
