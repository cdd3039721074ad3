"""Random programs that do about the same to many arrays: groups change no bit of a result."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.runtime.interpret import stacked_code
from tests.both_tiers import INTERPRETED, session

LANES = 6
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.squared_difference]
UNARY = [tf.square, tf.negative, tf.abs, tf.sign]
UPDATES = [tf.assign, tf.assign_add, tf.assign_sub]
SHAPES = [(), (3,), (2, 2), (1,)]


@st.composite
def programs(draw):
    """What to do in each of some rounds, and in which lanes it is done otherwise."""
    kinds = st.sampled_from(
        ["unary", "binary", "shared", "neighbour", "update", "update by a constant", "sum"]
    )
    rounds = draw(st.lists(st.tuples(kinds, st.integers(0, 60)), min_size=3, max_size=9))
    odd = draw(st.sets(st.integers(0, LANES - 1), max_size=2))
    fetched = draw(st.lists(st.integers(0, LANES - 1), max_size=3))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2))
    return rounds, odd, fetched, shapes


def build(rounds, odd, fetched, shapes):
    """The init op, and what to fetch: updates, some values, all variables."""
    generator = np.random.default_rng(3)
    variables = [
        tf.Variable(generator.integers(-8, 8, shapes[i % len(shapes)]).astype(np.float32) / 4)
        for i in range(LANES)
    ]
    shared = tf.placeholder(tf.float32, [])
    halves = {shape: tf.constant(0.5, shape=shape) for shape in shapes}
    lanes: list = [v.read_value() for v in variables]
    updates = []
    for kind, number in rounds:
        new = []
        for i, value in enumerate(lanes):
            choice = number + (i in odd)
            other = lanes[i - len(shapes)]  # of the same shape, or one that broadcasts
            if value.shape != other.shape:
                other = value
            if kind == "unary":
                value = UNARY[choice % len(UNARY)](value)
            elif kind == "binary":
                value = BINARY[choice % len(BINARY)](value, other)
            elif kind == "shared":
                value = BINARY[choice % len(BINARY)](value, shared if choice % 2 else 0.5)
            elif kind == "neighbour":
                value = BINARY[choice % len(BINARY)](
                    lanes[(i + choice * len(shapes)) % LANES], 0.25
                )
                if value.shape != lanes[i].shape:
                    value = lanes[i]
            elif kind == "sum":
                value = value - tf.reduce_sum(value) * 0.125
            else:
                with tf.control_dependencies(updates):
                    update = UPDATES[choice % len(UPDATES)]
                    by = value * 0.5
                    if kind == "update by a constant":
                        by = halves[shapes[i % len(shapes)]]
                    updates.append(update(variables[i], by).op)
                with tf.control_dependencies(updates[-1:]):
                    value = variables[i].read_value() + value
            new.append(tf.clip_by_value(value, -4.0, 4.0) if kind == "binary" else value)
        lanes = new
    with tf.control_dependencies(updates):
        end = tf.group(*[tf.assign(v, x * 0.25) for v, x in zip(variables, lanes, strict=True)])
    fetches = [end, [lanes[i] for i in fetched]]
    return tf.global_variables_initializer(), shared, fetches, variables


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_groups_change_no_bit(program):
    results = []
    for fewest in (2, 10**9):
        kept = stacked_code._FEWEST
        stacked_code._FEWEST = fewest
        try:
            with tf.Graph().as_default() as graph, session(INTERPRETED, graph) as sess:
                init, shared, fetches, variables = build(*program)
                sess.run(init)
                seen = [sess.run([fetches, variables], {shared: 0.75})[0][1] for _ in range(4)]
                results.append([*seen, sess.run(variables)])
        finally:
            stacked_code._FEWEST = kept
    for a, b in zip(*results, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
