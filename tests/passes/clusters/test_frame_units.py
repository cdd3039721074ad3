"""What lives together in a dynamic step, and what of it is compiled as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import runnel as tf
from runnel.ops.control_flow import enter, exit, loop_cond, merge, next_iteration, switch
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.frame_units import FrameUnits
from runnel.passes.program.program import Node, Program
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Liveness


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def analysed(*fetches: tf.Tensor) -> tuple[Program, Frames, Liveness]:
    program = prune(fetches, [], [], ())
    frames = Frames(program)
    return program, frames, Liveness(program, frames)


def units_of(*fetches: tf.Tensor) -> dict[str, list[Any]]:
    """The units of each frame; all that can be compiled is in stretches."""
    program, frames, liveness = analysed(*fetches)
    units = FrameUnits(program, frames, liveness, "CPU", None, _computes)
    return {frame.name: found for frame, found in units.of.items()}


def _computes(segment: Segment, program: Program) -> bool:
    return any(node.op_def.name not in ("Const", "Identity", "NoOp") for node in segment.nodes)


def stretches(units: list[Any]) -> list[set[str]]:
    """The types of the operations in each stretch."""
    return [{n.op_def.name for n in u.nodes} for u in units if isinstance(u, Segment)]


def node_named(program: Program, name: str) -> Node:
    return next(node for node in program.nodes if node.op.name == name)


def test_a_conditional_has_conditions_and_its_end_has_none():
    x = tf.placeholder_with_default(1.0, [])
    y = tf.cond(x > 0.0, lambda: tf.sin(x, name="a") * 2.0, lambda: tf.cos(x, name="b"))
    program, _, liveness = analysed(tf.exp(y, name="after"))
    a, b = (liveness.of[node_named(program, f"cond/{name}")] for name in "ab")
    [(predicate, side)], [(other, other_side)] = a, b
    assert predicate == other and {side, other_side} == {0, 1}
    assert liveness.of[node_named(program, "after")] == frozenset()


def test_the_loops_of_while_loop_are_regular_nested_ones_too():
    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x = tf.while_loop(lambda j, _: j < i, lambda j, y: (j + 1, y * 2.0), (0, x))[1]
        return i + 1, tf.cond(x > 9.0, lambda: x - 9.0, lambda: x)

    result = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), tf.constant(1.0)))[1]
    _, frames, liveness = analysed(result)
    assert len(frames.frames) == 3
    assert set(liveness.predicate) == set(frames.frames[1:])


def test_a_loop_with_a_variable_of_its_own_course_is_not_regular():
    """The second variable goes on only while it is small, whatever the first does."""
    i = enter(tf.constant(0), "loop")
    x = enter(tf.constant(1.0), "loop")
    one, three = (enter(tf.constant(n), "loop", is_constant=True) for n in (1, 3))
    two, four = (enter(tf.constant(n), "loop", is_constant=True) for n in (2.0, 4.0))
    merged_i, _ = merge([i, i])
    merged_x, _ = merge([x, x])
    stop, go_on = switch(merged_i, loop_cond(tf.less(merged_i, three)))
    merged_i.op._update_input(1, next_iteration(go_on + one))
    large, small = switch(merged_x, tf.less(merged_x, four))
    merged_x.op._update_input(1, next_iteration(small * two))
    results = [exit(stop), exit(large)]
    _, frames, liveness = analysed(*results)
    assert frames.frames[1] not in liveness.predicate
    with tf.Session() as sess:
        assert sess.run(results) == [3, 4.0]


def test_a_stretch_has_one_branch():
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    before = tf.sin(x) * 2.0
    y = tf.cond(before[0] > 0.0, lambda: tf.cos(before) + 1.0, lambda: tf.tanh(before))
    found = stretches(units_of(tf.exp(y) * 3.0)[""])
    assert any({"Cos", "AddV2"} <= names for names in found)
    for names in found:
        assert len(names & {"Sin", "Cos", "Tanh", "Exp"}) <= 1


def test_a_stretch_does_not_wait_for_what_it_does_not_need():
    queue = tf.FIFOQueue(10, [tf.float32], [[2]])

    def body(i: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return i + 1, tf.sin(x) + queue.dequeue(), tf.cos(y) * 2.0

    start = (tf.constant(0), tf.zeros([2]), tf.ones([2]))
    results = tf.while_loop(lambda i, *_: i < 3, body, start)
    units = units_of(*results)
    [name] = set(units) - {""}
    found = stretches(units[name])
    # The sine takes what the iteration before has waited for; the cosine nothing of the kind.
    assert not any({"Sin", "Cos"} <= names for names in found)
    assert any("Cos" in names for names in found) and any("Sin" in names for names in found)


def test_units_come_in_an_order_and_reads_stay_between_writes():
    v = tf.Variable([1.0, 2.0], use_resource=True)

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        before = tf.sin(v.read_value() + x)
        with tf.control_dependencies([v.assign_add(before)]):
            after = tf.cos(v.read_value() * 2.0)
        return i + 1, tf.tanh(before + after)

    result = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), tf.zeros([2])))[1]
    units = units_of(result)
    [name] = set(units) - {""}
    order = [
        kind
        for unit in units[name]
        if not isinstance(unit, Frame)
        for kind in (
            [unit.op_def.name] if isinstance(unit, Node) else [n.op_def.name for n in unit.nodes]
        )
    ]
    write = order.index("AssignAddVariableOp")
    assert order[:write].count("ReadVariableOp") == 1
    wanted = ["Sin", "AssignAddVariableOp", "Cos", "Tanh"]
    assert [kind for kind in order if kind in wanted] == wanted
