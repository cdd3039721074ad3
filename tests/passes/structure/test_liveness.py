"""Liveness: under which conditions a node is alive, and which loops run by one predicate."""

from __future__ import annotations

import itertools

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
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frames
from runnel.passes.structure.liveness import ALWAYS, Liveness


class Found:
    """The liveness of what ``fetches`` need, asked by tensor or operation."""

    def __init__(self, fetches, feeds=(), targets=()):
        self.program = prune(fetches, targets, feeds)
        self.frames = Frames(self.program)
        self.liveness = Liveness(self.program, self.frames)
        self.node_of = {node.op: node for node in self.program.nodes}
        self.number = dict(self.program.feeds)
        for node in self.program.nodes:
            for tensor, number in zip(node.op.outputs, node.outputs):
                self.number.setdefault(tensor, number)

    def of(self, thing):
        return self.liveness.of[self.node_of[getattr(thing, "op", thing)]]

    def value(self, tensor):
        return self.liveness.of_value(self.number[tensor])

    def when(self, **predicates):
        """Conditions: ``when(p=1)`` with ``p`` a name of a fed tensor."""
        by_name = {t.op.name: n for t, n in self.number.items()}
        return frozenset((by_name[name], side) for name, side in predicates.items())

    def predicate(self, name):
        """The value that decides whether the loop ``name`` goes on; None if it is not regular."""
        (frame,) = [frame for frame in self.frames.frames if frame.name == name]
        return self.liveness.predicate.get(frame)


def predicates(names):
    return [tf.placeholder(tf.bool, [], name=name) for name in names]


# Branches -------------------------------------------------------------------------------------


def test_the_sides_of_a_switch_are_alive_by_its_predicate():
    (p,) = predicates("p")
    x = tf.constant(1.0)
    off, on = switch(x, p)
    a, b = tf.sin(off), tf.cos(on)
    both = a + b
    found = Found([both], [p])
    assert found.of(x) == found.of(off) == ALWAYS
    assert found.value(off) == found.of(a) == found.when(p=0)
    assert found.value(on) == found.of(b) == found.when(p=1)
    assert found.of(both) == {*found.of(a), *found.of(b)}, "never, and known to be so"


def test_a_merge_of_the_two_sides_is_alive_as_the_switch_is():
    p, q = predicates("pq")
    inside = switch(tf.constant(1.0), q)[1]
    off, on = switch(inside, p)
    merged = merge([tf.sin(off), tf.cos(on)])[0]
    turned = merge([tf.cos(on), tf.sin(off)])[0]
    found = Found([merged, turned], [p, q])
    assert found.of(merged) == found.of(turned) == found.when(q=1)
    for tensor, (one, other) in ((merged, (0, 1)), (turned, (1, 0))):
        node = found.node_of[tensor.op]
        expected = (found.number[p], node.inputs[one], node.inputs[other])
        assert found.liveness.merges[node] == expected, "by the predicate: when false, when true"


@pytest.mark.parametrize("kind", ["other predicates", "one side twice", "unequal depth", "three"])
def test_what_a_merge_of_other_branches_is_only_a_run_can_tell(kind):
    p, q = predicates("pq")
    x = tf.constant(1.0)
    off, on = switch(x, p)
    one = switch(x, q)[1]
    inputs = {
        "other predicates": [off, one],
        "one side twice": [off, tf.sin(off)],
        "unequal depth": [off, switch(on, q)[1]],
        "three": [off, on, one],
    }[kind]
    merged = merge(inputs)[0]
    after = tf.sin(merged)
    found = Found([after], [p, q])
    node = found.node_of[merged.op]
    assert found.of(merged) == found.of(after) == {(node, -1)}
    assert node not in found.liveness.merges


def test_a_merge_that_never_is_reached_in_one_branch_is_dead_with_it():
    """A dead Merge: both of its inputs are in one branch of another conditional."""
    p, q = predicates("pq")
    in_branch = switch(tf.constant(1.0), p)[1]
    inner = merge(list(switch(in_branch, q)))[0]
    outer = merge([switch(tf.constant(2.0), p)[0], inner])[0]
    found = Found([outer], [p, q])
    assert found.of(inner) == found.when(p=1)
    assert found.of(outer) == ALWAYS


def test_control_edges_carry_death_except_to_a_control_trigger():
    (p,) = predicates("p")
    on = tf.sin(switch(tf.constant(1.0), p)[1])
    with tf.control_dependencies([on]):
        waits = tf.constant(2.0)
        trigger = control_trigger_op()
    with tf.control_dependencies([trigger]):
        goes_on = tf.constant(3.0)
    found = Found([waits, goes_on], [p])
    assert found.of(waits) == found.when(p=1)
    assert found.of(goes_on) == ALWAYS


def test_a_control_edge_that_was_added_later_counts():
    (p,) = predicates("p")
    early = tf.constant(2.0)
    on = tf.sin(switch(tf.constant(1.0), p)[1])
    early.op._add_control_input(on.op)
    found = Found([early], [p])
    assert found.of(early) == found.when(p=1)


def test_what_is_fed_inside_a_branch_is_alive():
    (p,) = predicates("p")
    on = switch(tf.constant(1.0), p)[1]
    inside = tf.sin(on)
    after = tf.cos(inside)
    assert Found([after], [p, inside]).of(after) == ALWAYS


def test_a_copy_of_a_predicate_is_the_predicate():
    p, q = predicates("pq")
    x = tf.constant(1.0)
    in_branch = switch(p, q)[1]
    copies = [tf.identity(p), tf.identity(tf.identity(p)), in_branch]
    sides = [switch(x, copy)[1] for copy in copies]
    found = Found(sides, [p, q])
    assert found.value(sides[0]) == found.value(sides[1]) == found.when(p=1)
    assert found.value(sides[2]) >= found.when(q=1)


def test_the_value_of_a_variable_that_the_step_writes_decides_anew_each_time():
    v = tf.Variable(True)
    x = tf.constant(1.0)
    first = switch(x, v)[1]
    with tf.control_dependencies([first]):
        assigned = tf.assign(v, False)
    second = switch(x, v)[1]
    found = Found([first, second], targets=[assigned.op])
    assert found.value(first) != found.value(second)
    assert all(side < 0 for _, side in found.value(first) | found.value(second))


# Loops ----------------------------------------------------------------------------------------


def loop(name, start, body, limit=3):
    """``while i < limit: i = body(i)`` of the primitives; what leaves, and its predicate."""
    entered = enter(start, name)
    merged, _ = merge([entered, entered])
    bound = enter(tf.constant(limit), name, is_constant=True)
    goes_on = merged < bound
    stop, on = switch(merged, loop_cond(goes_on))
    merged.op._update_input(1, next_iteration(body(on)))
    return exit(stop), goes_on, on


def increment(name):
    return lambda i: i + enter(tf.constant(1), name, is_constant=True)


def test_a_loop_of_one_predicate_is_regular():
    result, goes_on, on = loop("loop", tf.constant(0), increment("loop"))
    after = result + 1
    found = Found([after])
    predicate = found.number[goes_on]
    assert found.predicate("loop") == predicate
    assert found.value(on) == {(predicate, 1)}
    assert found.of(result) == {(predicate, 0)}
    assert found.of(after) == ALWAYS


def test_a_branch_in_a_loop_adds_its_predicate_and_leaves_the_loop_regular():
    (p,) = predicates("p")

    def body(i):
        inside = enter(p, "loop", is_constant=True)
        off, on = switch(i, inside)
        return merge([off, on + on])[0]

    result, goes_on, on = loop("loop", tf.constant(1), body)
    found = Found([result], [p])
    predicate = found.number[goes_on]
    assert found.predicate("loop") == predicate
    (double,) = [n for n in found.program.nodes if n.op_def.name in ("Add", "AddV2")]
    conditions = found.liveness.of[double]
    assert (predicate, 1) in conditions and len(conditions) == 2
    (merged,) = found.liveness.merges
    assert found.liveness.of[merged] == {(predicate, 1)}


def test_a_loop_in_a_branch_runs_and_leaves_only_there():
    (p,) = predicates("p")
    start = switch(tf.constant(0), p)[1]
    result, goes_on, on = loop("loop", start, increment("loop"))
    after = result + 1
    found = Found([after], [p])
    predicate = found.number[goes_on]
    assert found.predicate("loop") == predicate
    assert found.value(on) == {(predicate, 1)}, "within an iteration"
    assert found.of(after) == found.when(p=1)


def test_a_loop_in_a_loop_is_regular_as_the_outer_one_is():
    def body(i):
        entered = enter(i, "inner")
        merged, _ = merge([entered, entered])
        stop, on = switch(merged, loop_cond(merged < merged))
        merged.op._update_input(1, next_iteration(on))
        return exit(stop)

    result, goes_on, _ = loop("outer", tf.constant(0), body)
    found = Found([result])
    assert found.predicate("outer") == found.number[goes_on]
    assert found.predicate("inner") is not None


def test_a_frame_that_goes_on_without_a_condition_is_not_regular():
    entered = enter(tf.constant(0), "loop")
    merged, _ = merge([entered, entered])
    merged.op._update_input(1, next_iteration(merged))
    result = exit(merged)
    found = Found([result])
    assert found.predicate("loop") is None
    (condition,) = found.liveness.of_value(found.number[result])
    assert condition == (found.node_of[result.op], -1)


def test_a_loop_whose_variables_do_not_enter_together_is_not_regular():
    (p,) = predicates("p")
    start = enter(tf.constant(0), "loop")
    other = enter(switch(tf.constant(5), p)[1], "loop")
    i, _ = merge([start, start])
    j, _ = merge([other, other])
    bound = enter(tf.constant(3), "loop", is_constant=True)
    condition = loop_cond(i < bound)
    stop, on = switch(i, condition)
    other_stop, other_on = switch(j, condition)
    i.op._update_input(1, next_iteration(on))
    j.op._update_input(1, next_iteration(other_on))
    results = [exit(stop), exit(other_stop)]
    found = Found(results, [p])
    assert found.predicate("loop") is None
    assert found.value(results[0]) != found.value(results[1])


def test_a_loop_runs_where_what_its_predicate_is_made_of_is_alive():
    """A loop with a variable from outside, whose limit is made in a branch, runs in the branch."""
    (p,) = predicates("p")
    limit = switch(tf.constant(5), p)[1]
    start = enter(tf.constant(0), "loop")
    other = enter(limit, "loop")
    i, _ = merge([start, start])
    j, _ = merge([other, other])
    goes_on = i < j
    condition = loop_cond(goes_on)
    stop, on = switch(i, condition)
    other_stop, other_on = switch(j, condition)
    one = enter(tf.constant(1), "loop", is_constant=True)
    i.op._update_input(1, next_iteration(on + one))
    j.op._update_input(1, next_iteration(other_on))
    results = [exit(stop), exit(other_stop)]
    after = [tf.identity(result) for result in results]
    found = Found(after, [p])
    assert found.predicate("loop") == found.number[goes_on]
    assert found.of(after[0]) == found.of(after[1]) == found.when(p=1)
    ended = merge([tf.constant(-1) + switch(tf.constant(0), p)[0], after[0]])[0]
    with tf.Session() as sess:
        assert [sess.run(ended, {p: value}) for value in (True, False)] == [5, -1]


def test_a_loop_that_goes_on_against_its_predicate_is_not_regular():
    entered = enter(tf.constant(0), "loop")
    merged, _ = merge([entered, entered])
    bound = enter(tf.constant(3), "loop", is_constant=True)
    on, stop = switch(merged, loop_cond(merged > bound))
    merged.op._update_input(1, next_iteration(on))
    assert Found([exit(stop)]).predicate("loop") is None


def test_frames_with_blocking_operations_are_known():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    waits = tf.while_loop(lambda i: i < 3, lambda i: i + queue.dequeue(), [0])
    other = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    found = Found([waits, other])
    by_wait = {found.frames.runs_in[found.node_of[t.op]] for t in (waits, other)}
    assert len(by_wait) == 2
    assert found.frames.runs_in[found.node_of[waits.op]] in found.liveness.may_wait
    assert found.frames.runs_in[found.node_of[other.op]] not in found.liveness.may_wait


def test_what_tf_builds_is_regular_at_any_depth():
    p = tf.placeholder(tf.bool, [])

    def inner(s):
        return tf.while_loop(lambda j, t: j < 2, lambda j, t: (j + 1, t * 2.0), [0, s])[1]

    def body(i, s):
        return i + 1, tf.cond(p, lambda: inner(s), lambda: tf.cond(s > 3, lambda: s, lambda: -s))

    y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(1.0)])[1]
    found = Found([y], [p])
    frames = [frame for frame in found.frames.frames if frame.parent is not None]
    assert set(found.liveness.predicate) == set(frames)


# Order of conditions ----------------------------------------------------------------------------


def test_conditions_nest_after_what_their_predicate_is_computed_from():
    (p,) = predicates("p")
    x = tf.placeholder(tf.float32, [], name="x")
    inside = switch(x, p)[1]
    deeper = switch(inside, inside > 0)[1]
    found = Found([deeper], [p, x])
    (first, one), (second, other) = found.liveness.nested(found.value(deeper))
    assert (first, one, other) == (found.number[p], 1, 1)
    assert second != first


# Against running the graph ----------------------------------------------------------------------


def alive_nodes(program, held):
    """The nodes that are alive when predicates have the values ``held``, by TensorFlow's rules."""
    dead: set[int] = set()
    alive = set()
    for node in program.nodes:
        kind = node.op.type
        if kind == "Merge":
            lives = any(value not in dead for value in node.inputs)
        elif kind == "ControlTrigger":
            lives = True
        else:
            lives = dead.isdisjoint(node.inputs) and all(c in alive for c in node.control)
        if lives:
            alive.add(node)
        dead_outputs = () if lives else node.outputs
        if kind == "Switch" and lives:
            dead_outputs = (node.outputs[1 - held[node.inputs[1]]],)
        dead.update(dead_outputs)
    return alive


@pytest.mark.parametrize("seed", range(40))
def test_random_branches_are_alive_as_their_conditions_say(seed):
    rng = np.random.default_rng(seed)
    chosen = predicates("pqr")
    tensors = [tf.constant(1.0), tf.constant(2.0)]
    for _ in range(25):
        one, other = (tensors[i] for i in rng.integers(len(tensors), size=2))
        kind = rng.integers(6)
        with tf.control_dependencies([one.op] if rng.random() < 0.2 else []):
            if kind <= 1:
                tensors += switch(one, chosen[rng.integers(3)])
            elif kind == 2:
                tensors.append(tf.sin(one))
            elif kind == 3:
                tensors.append(one + other)
        if kind == 4:
            tensors.append(merge([one, other])[0])
        elif kind == 5:  # a whole conditional
            off, on = switch(one, chosen[rng.integers(3)])
            tensors.append(merge([tf.cos(off), tf.tanh(on)])[0])
    found = Found([], chosen, [t.op for t in tensors])
    of = found.liveness.of
    for sides in itertools.product((0, 1), repeat=3):
        held = {found.number[p]: side for p, side in zip(chosen, sides)}
        alive = alive_nodes(found.program, held)
        together: dict[frozenset, set[bool]] = {}
        for node in found.program.nodes:
            lives = node in alive
            together.setdefault(of[node], set()).add(lives)
            known = [(p, side) for p, side in of[node] if side >= 0]
            holds = all(held[p] == side for p, side in known)
            if len(known) == len(of[node]):
                assert lives == holds, node
            else:
                assert holds or not lives, node
        assert all(len(found_lives) == 1 for found_lives in together.values())
