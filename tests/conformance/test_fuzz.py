"""Random programs give in TensorFlow what they give in runnel: values, shapes, state, gradients.

The programs are those of ``tests/runtime``; the uses of each variable are chained by control
edges, since TensorFlow defines no order where runnel does.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, session
from tests.runtime.program_generator import ALL, STATE, random_program
from tests.runtime.random_programs import Program

pytest.importorskip("tensorflow")

SEEDS = st.integers(0, 2**32 - 1)
SMOOTH = ("elementwise", "integers", "reductions", "shapes", "gathers", "checks", "reads")


def fuzz(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def _tensorflow() -> Any:
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    return tensorflow


def _run(tf: Any, program: Program, fetches: list[int], open_session: Any) -> list[Any]:
    """Static shapes, and the values of two steps with the variables after each."""
    with tf.Graph().as_default() as graph:
        tensors, variables = program.build(tf)
        feeds = {tensors[number]: value for number, value in program.feeds.items()}
        init = tf.global_variables_initializer()
        found: list[Any] = []
        with open_session(graph) as sess:
            sess.run(init)
            for _ in range(2):
                values = sess.run([tensors[f] for f in fetches], feeds)
                found += [np.asarray(v) for v in [*values, *sess.run(variables)]]
        return found


@given(SEEDS)
@fuzz(15)
def test_values_and_state(seed: int) -> None:
    program = random_program(seed, (*ALL, *STATE), ordered=True)
    rng = random.Random(seed)
    numbers = list(range(len(program.steps)))
    fetches = rng.sample(numbers, rng.randint(1, len(numbers)))
    tensorflow = _tensorflow()
    expected = _run(tensorflow, program, fetches, lambda g: tensorflow.Session(graph=g))
    for level in (INTERPRETED, COMPILED):
        found = _run(runnel, program, fetches, lambda g, level=level: session(level, g))
        assert_same(expected, found, rtol=1e-8, atol=1e-8)


@given(SEEDS)
@fuzz(15)
def test_static_shapes_say_what_tensorflow_says_or_more(seed: int) -> None:
    program = random_program(seed, (*ALL, *STATE), ordered=True)
    shapes = []
    for tf in (_tensorflow(), runnel):
        with tf.Graph().as_default():
            tensors, _ = program.build(tf)
            shapes.append([runnel.TensorShape(t.shape.as_proto()) for t in tensors])
    for number, (theirs, ours) in enumerate(zip(*shapes, strict=True)):
        assert theirs.merge_with(ours) == ours, f"step {number}: {program.steps[number]}"


@given(SEEDS)
@fuzz(12)
def test_gradients(seed: int) -> None:
    program = random_program(seed, SMOOTH, smooth=True)
    values = program.compute(list(range(len(program.steps))), program.initial)
    floats = [n for n, v in enumerate(values) if v.dtype == np.float64 and v.size]
    sources = [n for n in program.feeds if program.feeds[n].dtype == np.float64]
    if not floats or not sources:
        return
    results = []
    for tf in (_tensorflow(), runnel):
        with tf.Graph().as_default():
            tensors, _ = program.build(tf)
            loss = tf.add_n([tf.reduce_sum(tf.sin(tensors[n])) for n in floats])
            found = tf.gradients(loss, [tensors[n] for n in sources])
            connected = [g is not None for g in found]
            grads = [tf.convert_to_tensor(g) for g in found if g is not None]
            feeds = {tensors[n]: v for n, v in program.feeds.items()}
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                results.append((connected, sess.run(grads, feeds)))
    assert results[0][0] == results[1][0]
    assert_same(results[0][1], results[1][1], rtol=1e-7, atol=1e-8)
