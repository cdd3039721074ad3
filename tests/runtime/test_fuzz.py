"""Random programs give in every tier, optimised or not, what NumPy gives step by step."""

from __future__ import annotations

import contextlib
import os
import random
import warnings
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.runtime.interpret import interpreted_segment, verification, written_code
from runnel.runtime.segment import tier_choice
from tests.both_tiers import COMPILED, INTERPRETED
from tests.runtime.program_generator import ALL, STATE, random_program
from tests.runtime.random_programs import Program

# More examples: RUNNEL_FUZZ=20 pytest tests/runtime/test_fuzz.py
_FACTOR = float(os.environ.get("RUNNEL_FUZZ", "1"))


def fuzz(examples: int) -> settings:
    return settings(
        max_examples=max(1, int(examples * _FACTOR)),
        derandomize=_FACTOR == 1,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # another seed is not a smaller program
        suppress_health_check=list(HealthCheck),
    )


def session(level: int, optimised: bool = True) -> tf.Session:
    config = tf.ConfigProto()
    options = config.graph_options.optimizer_options
    options.global_jit_level = level
    options.opt_level = 0 if optimised else -1
    return tf.Session(config=config)


SEEDS = st.integers(0, 2**32 - 1)
AUTO = 0
MODES = [(INTERPRETED, True), (INTERPRETED, False), (COMPILED, True), (COMPILED, False)]


def assert_equal(found: Any, expected: np.ndarray, what: str) -> None:
    found = np.asarray(found)
    assert found.dtype == expected.dtype, what
    assert found.shape == expected.shape, what
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), 1e-8, 1e-8, err_msg=what
    )


def run(
    program: Program, fetches: list[int], fed: dict[int, np.ndarray], modes: Any, runs: int = 3
) -> None:
    """Runs ``fetches`` several times in each mode, and compares with NumPy after each run."""
    fed = {**program.feeds, **fed}
    with tf.Graph().as_default():
        tensors, variables = program.build(tf)
        init = tf.global_variables_initializer()
        feed_dict = {tensors[number]: value for number, value in fed.items()}
        for level, optimised in modes:
            state = list(program.initial)
            with session(level, optimised) as sess:
                sess.run(init)
                for number in range(runs if level != AUTO else 5):
                    expected = program.compute(fetches, state, fed)
                    found = sess.run(
                        [tensors[f] for f in fetches], feed_dict, **_how(level, number)
                    )
                    where = f"level {level}, optimised {optimised}, run {number}"
                    for f, a, b in zip(fetches, found, expected, strict=True):
                        assert_equal(a, b, f"{where}: step {f} {program.steps[f]}")
                    for a, b in zip(sess.run(variables), state, strict=True):
                        assert_equal(a, b, f"{where}: a variable")


def _how(level: int, number: int) -> dict[str, Any]:
    """A traced step is interpreted: state goes from the compiled tier to the other and back."""
    if level != AUTO or number != 3:
        return {}
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    return {"options": options, "run_metadata": tf.RunMetadata()}


@given(SEEDS)
@fuzz(25)
def test_every_tier_computes_what_numpy_computes(seed: int) -> None:
    program = random_program(seed)
    rng = random.Random(seed)
    numbers = list(range(len(program.steps)))
    run(program, rng.sample(numbers, rng.randint(1, len(numbers))), {}, MODES)


@given(SEEDS)
@fuzz(8)
def test_a_step_may_change_its_tier_from_run_to_run(seed: int) -> None:
    """Interpreted, optimised, compiled, interpreted for a trace, compiled."""
    program = random_program(seed, max_steps=20)
    patches = [
        mock.patch.object(tier_choice, name, 0) for name in dir(tier_choice) if "_SECONDS" in name
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        run(program, list(range(len(program.steps))), {}, [(AUTO, True)])


@given(SEEDS)
@fuzz(25)
def test_a_step_that_is_written_as_python_computes_the_same(seed: int) -> None:
    """Piece by piece, each some instructions long, from the third run on."""
    program = random_program(seed)
    rng = random.Random(seed)
    numbers = list(range(len(program.steps)))
    fetches = rng.sample(numbers, rng.randint(1, len(numbers)))
    with (
        mock.patch.object(interpreted_segment, "_OFTEN", 1),
        mock.patch.object(written_code, "PIECE", rng.choice([2, 7, 256])),
        mock.patch.object(verification, "enabled", False),
    ):
        run(program, fetches, {}, MODES[:2], runs=8)


@given(SEEDS)
@fuzz(8)
def test_any_value_can_be_fed(seed: int) -> None:
    program = random_program(seed)
    rng = random.Random(seed)
    numbers = list(range(len(program.steps)))
    everything = program.compute(numbers, list(program.initial))
    fed = rng.sample(numbers, 3)
    values = {f: np.zeros_like(everything[f]) for f in fed}
    run(program, [numbers[-1], numbers[-2], *fed], values, MODES[::3])


@given(SEEDS)
@fuzz(8)
def test_a_failed_step_changes_no_variable(seed: int) -> None:
    """A check on a fed value fails wherever it stands among the other steps."""
    program = random_program(seed, (*(f for f in ALL if f != "host"), *STATE))
    with tf.Graph().as_default():
        numbers = list(range(len(program.steps)))
        bad = tf.placeholder(tf.float64, [])
        position = random.Random(seed).choice(numbers)
        checked: list[Any] = []
        steps = program.steps[:]
        tensors: list[Any] = []
        variables = [
            tf.Variable(v, use_resource=r)
            for v, r in zip(program.initial, program.use_resource, strict=True)
        ]
        for number, step in enumerate(steps):
            with tf.control_dependencies([tensors[c] for c in step.control]):
                tensors.append(program._build_step(tf, step, tensors, variables))
            if number == position and seed % 2:
                checked.append(tf.check_numerics(bad, "the value that was fed").op)
            elif number == position:
                checked.append(tf.Assert(bad > 0.0, ["the value that was fed:", bad]))
        feeds = {tensors[n]: v for n, v in program.feeds.items()}
        for level in (INTERPRETED, COMPILED):
            with session(level, True) as sess:
                sess.run(tf.global_variables_initializer())
                sess.run([*tensors, *checked], {**feeds, bad: 1.0})
                before = sess.run(variables)
                try:
                    sess.run([*tensors, *checked], {**feeds, bad: np.nan})
                except tf.errors.InvalidArgumentError as error:
                    assert error.op is checked[0] and "the value that was fed" in error.message
                else:
                    raise AssertionError("the check did not fail")
                if not _has_host_steps(program):
                    for a, b in zip(sess.run(variables), before, strict=True):
                        np.testing.assert_array_equal(a, b)
                sess.run([*tensors, *checked], {**feeds, bad: 1.0})


def _has_host_steps(program: Program) -> bool:
    """True when the step is cut into segments, of which the earlier ones may have stored."""
    return any(step.op in ("boolean_mask", "range", "py_func") for step in program.steps)


SMOOTH = ("elementwise", "integers", "reductions", "shapes", "gathers", "checks", "reads")


@given(SEEDS)
@fuzz(20)
def test_gradients_agree_with_finite_differences(seed: int) -> None:
    """The derivative in a random direction, of a random weighting of every float value."""
    program = random_program(seed, SMOOTH, smooth=True)
    numbers = [
        n
        for n, v in enumerate(program.compute(list(range(len(program.steps))), program.initial))
        if v.dtype == np.float64 and v.size
    ]
    sources = [n for n in program.feeds if program.feeds[n].dtype == np.float64]
    if not sources or not numbers:
        return
    rng = np.random.default_rng(seed)
    values = program.compute(numbers, program.initial)
    weights = [rng.uniform(-1, 1, np.shape(v)) for v in values]
    directions = {n: rng.uniform(-1, 1, program.feeds[n].shape) for n in sources}

    def along(step: float) -> float:
        fed = {n: program.feeds[n] + step * directions[n] for n in sources}
        shifted = program.compute(numbers, program.initial, fed)
        return sum(float(np.sum(w * v)) for w, v in zip(weights, shifted, strict=True))

    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        estimates = [(along(h) - along(-h)) / (2 * h) for h in (1e-5, 2e-5)]
    if not np.isfinite(estimates).all():
        return  # a mean of nothing
    if abs(estimates[0] - estimates[1]) > 1e-5 * (1 + abs(estimates[0])):
        return  # a kink, or too strongly curved, here
    with tf.Graph().as_default():
        tensors, _ = program.build(tf)
        loss = tf.add_n(
            [tf.reduce_sum(w * tensors[n]) for w, n in zip(weights, numbers, strict=True)]
        )
        found = tf.gradients(loss, [tensors[n] for n in sources], unconnected_gradients="zero")
        feeds = {tensors[n]: v for n, v in program.feeds.items()}
        for level in (INTERPRETED, COMPILED):
            with session(level, True) as sess:
                sess.run(tf.global_variables_initializer())
                grads = sess.run(found, feeds)
                for n, g in zip(sources, grads, strict=True):
                    assert np.shape(g) == program.feeds[n].shape
                slope = sum(
                    float(np.sum(g * directions[n])) for n, g in zip(sources, grads, strict=True)
                )
                np.testing.assert_allclose(slope, estimates[0], rtol=1e-4, atol=1e-5)
