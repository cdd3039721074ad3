"""Frames: the loop that each node runs in, and the order in which the nodes of one begin."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.control_flow.while_context import WhileContext
from runnel.ops.control_flow import enter, exit, loop_cond, merge, next_iteration, switch
from runnel.passes.program.program import Node
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frame, Frames


class Found:
    """The frames of what ``fetches`` need, asked by tensor or operation."""

    def __init__(self, fetches, feeds=(), targets=()):
        self.program = prune(fetches, targets, feeds)
        self.frames = Frames(self.program)
        self.outermost = self.frames.outermost
        self._nodes = {node.op: node for node in self.program.nodes}

    def node(self, thing) -> Node:
        return self._nodes[getattr(thing, "op", thing)]

    def runs_in(self, thing) -> Frame:
        return self.frames.runs_in[self.node(thing)]

    def leads_to(self, thing) -> Frame:
        return self.frames.leads_to[self.node(thing)]

    def place(self, thing) -> int:
        """Where a node or a frame stands among those of its frame."""
        if isinstance(thing, Frame):
            return thing.parent.items.index(thing)
        return self.runs_in(thing).items.index(self.node(thing))


def begin(name, first=0, limit=3):
    """The first half of ``while i < limit``: the loop variable, and what goes on and out."""
    start = enter(tf.constant(first), name)
    merged, _ = merge([start, start])
    bound = enter(tf.constant(limit), name, is_constant=True)
    stop, go_on = switch(merged, loop_cond(merged < bound))
    return merged, go_on, stop


def end(name, merged, go_on):
    one = enter(tf.constant(1), name, is_constant=True)
    following = next_iteration(go_on + one)
    merged.op._update_input(1, following)
    return following


def test_a_step_without_loops_is_one_frame_in_the_order_of_construction():
    x = tf.constant(1.0)
    y = tf.sin(x)
    found = Found([y])
    assert found.frames.frames == [found.outermost]
    assert [item.op for item in found.outermost.items] == [x.op, y.op]
    assert found.outermost.parent is None and found.outermost.name == ""


def test_an_enter_leads_into_a_frame_and_an_exit_out_of_it():
    merged, go_on, stop = begin("loop")
    following = end("loop", merged, go_on)
    result = exit(stop)
    after = result + 1
    found = Found([after])
    outermost, loop = found.frames.frames
    assert (loop.name, loop.parent) == ("loop", outermost)
    start = merged.op.inputs[0]
    assert found.runs_in(start) is outermost and found.leads_to(start) is loop
    for inside in (merged, go_on, following):
        assert found.runs_in(inside) is found.leads_to(inside) is loop
    assert found.runs_in(result) is loop and found.leads_to(result) is outermost
    assert found.runs_in(after) is outermost
    assert {node.op.name for node in loop.enters} == {"Enter", "Enter_1", "Enter_2"}


def test_a_frame_begins_when_all_that_enters_it_is_there_and_ends_before_what_it_gives_is_used():
    merged, go_on, stop = begin("loop")
    beside = tf.sin(tf.constant(1.0))  # constructed before the last Enter
    end("loop", merged, go_on)
    after = exit(stop) + 1
    found = Found([after, beside])
    (loop,) = [frame for frame in found.frames.frames if frame.parent is not None]
    assert all(found.place(node.op) < found.place(loop) for node in loop.enters)
    assert found.place(loop) < found.place(after)
    assert loop.rank == found.place(loop)


def test_a_node_of_the_parent_that_was_constructed_before_a_loop_begins_before_it():
    before = tf.sin(tf.constant(1.0))
    merged, go_on, stop = begin("loop")
    end("loop", merged, go_on)
    result = exit(stop)
    behind = tf.cos(tf.constant(1.0))
    found = Found([before, result, behind])
    (loop,) = [frame for frame in found.frames.frames if frame.parent is not None]
    assert found.place(before) < found.place(loop) < found.place(behind)


def test_a_later_node_that_an_earlier_one_needs_begins_just_before_it():
    first = tf.constant(1.0, name="first")
    early = tf.sin(first, name="early")
    middle = tf.constant(2.0, name="middle")
    late = tf.constant(3.0, name="late")
    early.op._add_control_input(late.op)
    found = Found([early, middle])
    names = [item.op.name for item in found.outermost.items]
    assert names == ["first", "late", "early", "middle"]


def test_a_loop_waits_for_a_control_edge_that_was_added_to_its_enter():
    merged, go_on, stop = begin("loop")
    end("loop", merged, go_on)
    result = exit(stop)
    late = tf.constant(3.0)
    merged.op.inputs[0].op._add_control_input(late.op)
    found = Found([result])
    (loop,) = [frame for frame in found.frames.frames if frame.parent is not None]
    assert found.place(late) < found.place(merged.op.inputs[0]) < found.place(loop)


def test_frames_nest_and_parents_come_first():
    outer, outer_on, outer_stop = begin("outer")
    inner_start = enter(outer_on, "inner")
    inner, _ = merge([inner_start, inner_start])
    bound = enter(enter(tf.constant(9), "outer", is_constant=True), "inner", is_constant=True)
    stop, go_on = switch(inner, loop_cond(inner < bound))
    inner.op._update_input(1, next_iteration(go_on))
    left = exit(stop)
    end("outer", outer, left)
    found = Found([exit(outer_stop)])
    outermost, first, second = found.frames.frames
    assert (first.name, first.parent) == ("outer", outermost)
    assert (second.name, second.parent) == ("inner", first)
    assert found.runs_in(inner) is second and found.leads_to(left) is first
    assert second.is_inside(first) and second.is_inside(outermost) and second.is_inside(second)
    assert not first.is_inside(second) and not outermost.is_inside(first)


def test_one_name_in_two_places_is_two_frames():
    results = []
    for parent in ("a", "b"):
        merged, go_on, stop = begin(parent)
        inner_start = enter(go_on, "same")
        inner, _ = merge([inner_start, inner_start])
        inner_stop, inner_on = switch(inner, loop_cond(inner < inner))
        inner.op._update_input(1, next_iteration(inner_on))
        end(parent, merged, exit(inner_stop))
        results.append(exit(stop))
    found = Found(results)
    same = [frame for frame in found.frames.frames if frame.name == "same"]
    assert [frame.parent.name for frame in same] == ["a", "b"]


def test_a_node_that_only_waits_for_something_inside_a_loop_runs_there():
    merged, go_on, stop = begin("loop")
    with tf.control_dependencies([merged]):
        constant = tf.constant(1)
    free = tf.constant(2)
    following = next_iteration(go_on + constant)
    merged.op._update_input(1, following)
    found = Found([exit(stop), free])
    assert found.runs_in(constant).name == "loop"
    assert found.runs_in(free) is found.outermost


def test_what_is_fed_belongs_to_no_frame():
    merged, go_on, stop = begin("loop")
    doubled = go_on * enter(tf.constant(2), "loop", is_constant=True)
    tripled = doubled + doubled
    merged.op._update_input(1, next_iteration(merged + tripled))
    found = Found([exit(stop)], feeds=[go_on])
    assert found.runs_in(doubled).name == "loop"
    found = Found([tripled], feeds=[doubled])
    assert found.runs_in(tripled) is found.outermost, "nothing else says where it runs"


# Mistakes -------------------------------------------------------------------------------------


def refused(fetches, feeds=()):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        Frames(prune(fetches, [], feeds))
    return caught.value


def test_inputs_of_two_frames_do_not_mix():
    inside = enter(tf.constant(1), "loop")
    outside = tf.constant(2, name="outside")
    error = refused([exit(tf.add(inside, outside, name="sum"))])
    assert error.op.name == "sum"
    for part in ("'Enter' is in the loop 'loop'", "'outside' is in none", "through Enter"):
        assert part in error.message


def test_two_loops_do_not_mix():
    error = refused([tf.add(enter(tf.constant(1), "a"), enter(tf.constant(2), "b"))])
    assert "in the loop 'a'" in error.message and "in the loop 'b'" in error.message


def test_a_control_edge_does_not_reach_into_a_loop():
    inside = enter(tf.constant(1), "loop")
    outside = tf.constant(2)
    result = tf.identity(inside)
    result.op._add_control_input(outside.op)
    assert "different loops" in refused([exit(result)]).message


def test_an_exit_needs_a_loop():
    error = refused([exit(tf.constant(1), name="out")])
    assert error.op.name == "out" and "bring it into a frame with Enter" in error.message


def test_what_goes_on_must_be_of_the_same_loop():
    start = enter(tf.constant(0), "loop")
    merged, _ = merge([start, start])
    merged.op._update_input(1, next_iteration(tf.constant(1)))
    assert "different loops" in refused([exit(merged)]).message


# Against the contexts in which operations were built --------------------------------------------


def built_in(op) -> list[str]:
    """The loops around ``op``, from the outside in, as they were when it was built."""
    names = []
    context = op.control_flow_context
    while context is not None:
        if isinstance(context, WhileContext):
            names.append(context.name)
        context = context.outer_context
    return names[::-1]


def path(frame: Frame) -> list[str]:
    names = []
    while frame.parent is not None:
        names.append(frame.name)
        frame = frame.parent
    return names[::-1]


def random_value(rng, depth, inputs):
    """A value of ``inputs`` through loops and branches in each other."""
    kind = rng.choice(["op", "op", "loop", "cond"]) if depth else "op"
    one = inputs[rng.integers(len(inputs))]
    other = inputs[rng.integers(len(inputs))]
    if kind == "loop":
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, s: (i + 1, random_value(rng, depth - 1, [s, one, other])),
            [0, random_value(rng, depth - 1, inputs)],
        )[1]
    if kind == "cond":
        return tf.cond(
            one < other,
            lambda: random_value(rng, depth - 1, inputs),
            lambda: random_value(rng, depth - 1, inputs),
        )
    return tf.sin(one) + other


@pytest.mark.parametrize("seed", range(25))
def test_loops_and_branches_in_each_other_run_where_they_were_built(seed):
    rng = np.random.default_rng(seed)
    x = tf.placeholder(tf.float32, [])
    y = random_value(rng, 4, [x, tf.constant(2.0)])
    fetches = [y, *tf.gradients(y, x)] if seed % 2 else [y]
    found = Found([t for t in fetches if t is not None], feeds=[x])
    frames = found.frames
    for node in found.program.nodes:
        # An Enter and an Exit are built in the loop: one leads into it, the other runs there.
        where = frames.runs_in if node.op.type == "Exit" else frames.leads_to
        assert path(where[node]) == built_in(node.op), node
    assert set(frames.runs_in) == set(found.program.nodes)
    producers = found.program.producers()
    for frame in frames.frames:
        place = {item: i for i, item in enumerate(frame.items)}
        assert len(place) == len(frame.items), "each once"
        nodes = [item for item in frame.items if isinstance(item, Node)]
        assert {n for n, f in frames.runs_in.items() if f is frame} == set(nodes)
        for node in nodes:
            sources = [producers[v] for v in node.inputs if v in producers]
            for source in (*sources, *node.control):
                if source.op.type == "NextIteration" and node.op.type == "Merge":
                    continue
                within = frames.runs_in[source]
                if within is frame:
                    assert place[source] < place[node]
                elif within.parent is frame:
                    assert place[within] < place[node]
