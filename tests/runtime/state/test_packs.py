"""Many small variables that a step treats alike: packed or not, they are the user's variables."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.runtime.segment.tier_choice import TierChoice
from runnel.runtime.state.pack import Row
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, session

MANY = 16


def is_packed(sess, variable):
    """Whether the session has the variable's value in an array with others'."""
    return type(sess._task.cell(variable.op).held) is Row


def compilations():
    compiler = sys.modules.get("runnel.runtime.compile.compiler")
    return 0 if compiler is None else compiler.compilations


class Numbers:
    """Variables with steps that read and write some of them, and the same in NumPy."""

    def __init__(self, use_resource=False):
        start = np.arange(MANY * 3, dtype=np.float32).reshape(MANY, 3) / 8
        self.given = tf.placeholder(tf.float32, [3])
        self.checked = tf.placeholder(tf.int32, [])
        with tf.variable_scope("v", use_resource=use_resource):
            self.variables = [
                tf.get_variable(f"v{i}", initializer=row) for i, row in enumerate(start)
            ]
        self.values = start.copy()
        self.has_compiled = False
        self.init = tf.global_variables_initializer()
        v = self.variables
        self.steps = {
            "scale": tf.group(*[tf.assign(x, x * 0.5 + 1.0) for x in v]),
            "add": tf.group(*[tf.assign_add(x, tf.square(x) - x) for x in v]),
            "rotate": self._rotated(),
            "half": tf.group(*[tf.assign_sub(x, x * 0.25) for x in v[: MANY - 1]]),
            "backwards": tf.group(*[tf.assign(x, -x + 2.0) for x in reversed(v)]),
            "one": tf.assign(v[4], self.given),
            "checked": self._checked(),
        }

    def _rotated(self):
        """Each variable gets twice what its neighbour had before."""
        old = [tf.identity(x) * 2.0 - 0.5 for x in self.variables]
        with tf.control_dependencies(old):
            return tf.group(
                *[tf.assign(x, old[i - 1] + 0.25) for i, x in enumerate(self.variables)]
            )

    def _checked(self):
        factor = tf.gather(tf.constant([1.5, 2.0]), self.checked)
        return tf.group(*[tf.assign(x, x * factor - 1.0) for x in self.variables])

    def run(self, sess, name, number):
        """Runs a step, and does the same to the values."""
        f, values = np.float32, self.values
        feeds = {self.given: np.full(3, number, np.float32), self.checked: number % 3}
        if name == "read":
            self.check(sess, [number])
            return
        if name == "checked" and number % 3 == 2:
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(self.steps[name], feeds)
            return
        sess.run(self.steps[name], feeds)
        if name == "scale":
            self.values = values * f(0.5) + f(1)
        elif name == "add":
            self.values = values + (values * values - values)
        elif name == "rotate":
            self.values = np.roll(values * f(2) - f(0.5), 1, axis=0) + f(0.25)
        elif name == "half":
            self.values = values.copy()
            self.values[:-1] -= values[:-1] * f(0.25)
        elif name == "backwards":
            self.values = -values + f(2)
        elif name == "one":
            self.values = values.copy()
            self.values[4] = number
        else:
            self.values = values * f([1.5, 2.0][number % 3]) - f(1)

    def check(self, sess, some=range(MANY)):
        """The variables have the values: to the bit, unless XLA has computed them."""
        held = sess.run([self.variables[i] for i in some])
        rounding = 1e-3 if self.has_compiled else 0
        np.testing.assert_allclose(held, self.values[list(some)], rtol=rounding, atol=rounding)


NAMES = ["scale", "add", "rotate", "half", "backwards", "one", "checked", "read"]


@pytest.fixture(scope="module", params=[False, True], ids=["references", "resources"])
def numbers(request):
    with tf.Graph().as_default() as graph:
        made = Numbers(request.param)
        with session(INTERPRETED, graph) as plain, session(COMPILED, graph) as compiled:
            yield made, {"interpreted": plain, "compiled": compiled}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, MANY - 1)), max_size=12),
    tier=st.sampled_from(["interpreted", "interpreted", "compiled"]),
)
def test_steps_over_all_and_some_of_the_variables_do_what_numpy_does(numbers, steps, tier):
    made, sessions = numbers
    sess = sessions[tier]
    made.has_compiled = tier == "compiled"
    sess.run(made.init)
    made.values = np.arange(MANY * 3, dtype=np.float32).reshape(MANY, 3) / 8
    for name, number in steps:
        made.run(sess, name, number)
        if np.abs(made.values).max() > 1e3:  # squares would magnify what was rounded
            break
    made.check(sess)


@pytest.fixture
def packed():
    """Variables of a session in which they are packed."""
    made = Numbers()
    with session(INTERPRETED) as sess:
        sess.run(made.init)
        for _ in range(3):
            made.run(sess, "scale", 0)
        assert all(is_packed(sess, v) for v in made.variables)
        yield made, sess


def test_writing_one_takes_it_out_and_the_next_step_over_all_takes_it_in_again(packed):
    made, sess = packed
    made.run(sess, "one", 7)
    assert not is_packed(sess, made.variables[4]) and is_packed(sess, made.variables[5])
    made.check(sess)
    made.run(sess, "scale", 0)
    assert is_packed(sess, made.variables[4])
    made.check(sess)


def test_a_value_that_was_read_does_not_change_with_the_pack(packed):
    made, sess = packed
    before = sess.run(made.variables)
    kept = [value.copy() for value in before]
    before[0][:] = 100  # it is the caller's
    made.run(sess, "scale", 0)
    np.testing.assert_array_equal(before[1:], kept[1:])
    made.check(sess)


def test_a_failed_step_leaves_packed_values_as_they_were(packed):
    made, sess = packed
    made.run(sess, "checked", 0)
    made.run(sess, "checked", 2)
    made.check(sess)


def test_a_variable_without_a_value_is_named():
    made = Numbers()
    step = made.steps["scale"]
    with session(INTERPRETED) as sess:
        sess.run([v.initializer for v in made.variables if v is not made.variables[3]])
        for _ in range(3):
            with pytest.raises(tf.errors.FailedPreconditionError, match="v/v3"):
                sess.run(step)


def test_variables_whose_shape_may_change_are_not_packed(packed):
    made, sess = packed
    anything = tf.placeholder(tf.float32, None)
    sess.run(tf.assign(made.variables[2], anything, validate_shape=False), {anything: [1, 2, 3]})
    made.values[2] = [1, 2, 3]
    made.run(sess, "scale", 0)
    assert not is_packed(sess, made.variables[2])
    made.check(sess)


def test_a_compiled_step_takes_packed_values_and_a_packed_one_its_results(monkeypatch):
    made, compiles = Numbers(), []
    monkeypatch.setattr(TierChoice, "pays", lambda self, variant: bool(compiles))
    made.has_compiled = True
    with tf.Session() as sess:
        sess.run(made.init)
        for _ in range(2):  # which is not optimized, and then not stacked yet
            made.run(sess, "scale", 0)
        for compiled in (False, True, False, False):
            compiles[:] = [None] * compiled
            name = "add" if compiled else "scale"
            before = compilations()
            made.run(sess, name, 0)
            if compiled:  # beside that step, and for the next
                await_compilations()
                made.run(sess, name, 0)
            assert compilations() == before + compiled
            assert is_packed(sess, made.variables[0]) is not compiled
        made.run(sess, "add", 0)
        made.run(sess, "backwards", 0)
        made.check(sess)


def test_concurrent_steps_over_all_and_one_lose_no_update():
    counters = [tf.get_variable(f"c{i}", [], initializer=tf.zeros_initializer()) for i in range(40)]
    every = tf.group(*[tf.assign_add(c, tf.square(c * 0.0 + 1.0)) for c in counters])
    one = tf.assign_add(counters[7], 1.0)
    rounds = 150
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())

        def repeat(step):
            for _ in range(rounds):
                sess.run(step)

        threads = [threading.Thread(target=repeat, args=(step,)) for step in (every, every, one)]
        for thread in threads:
            thread.start()
        seen = [sess.run(counters[0]) for _ in range(50)]
        for thread in threads:
            thread.join()
        expected = np.full(40, 2.0 * rounds)
        expected[7] += rounds
        np.testing.assert_array_equal(sess.run(counters), expected)
    assert seen == sorted(seen)


def test_an_observer_sees_each_operation(packed):
    made, sess = packed
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    sess.run(made.steps["scale"], options=options, run_metadata=metadata)
    made.values = made.values * np.float32(0.5) + np.float32(1)
    names = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
    assert sum(name.startswith("Assign") for name in names) == MANY
    made.check(sess)


def test_adam_with_many_variables_gives_the_numbers_of_the_compiled_tier():
    results = []
    for level in (INTERPRETED, COMPILED):
        with tf.Graph().as_default() as graph:
            shapes = [[8] if i % 3 else [2, 2] for i in range(30)]
            made = [
                tf.get_variable(f"w{i}", s, initializer=tf.constant_initializer(i / 10))
                for i, s in enumerate(shapes)
            ]
            loss = tf.add_n([tf.reduce_sum(tf.square(w - 1.0)) for w in made])
            train = tf.train.AdamOptimizer(0.05).minimize(loss)
            with session(level, graph) as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(5):
                    sess.run(train)
                if level == INTERPRETED:
                    assert all(is_packed(sess, w) for w in made)
                results.append(sess.run([*made, loss]))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
