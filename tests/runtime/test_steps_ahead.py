"""Steps that are sent ahead: nobody waits for them, and nothing is lost when one fails."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.runtime.session import settings
from runnel.runtime.state.sent_ahead import Sender

AHEAD = 4
BAD = 99
"""An index that no table has."""


def configured(ahead: int | None = AHEAD, level: int = 1) -> Any:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    if ahead is not None:
        own = config.graph_options.rewrite_options.custom_optimizers.add(name="runnel")
        own.parameter_map["steps_ahead"].i = ahead
    return config


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small steps have ended on a CPU when they are looked at; here a look never finds that."""
    monkeypatch.setattr(Sender, "look", lambda self: None)


class Model:
    """A table whose rows are gathered and updated, and variables that change in other ways."""

    def __init__(self) -> None:
        self.rows = tf.placeholder(tf.int32, [2], name="rows")
        self.table = tf.Variable(tf.zeros([8, 3]), name="table")
        self.total = tf.Variable(0.0, name="total")
        self.noise = tf.Variable(tf.zeros([2]), use_resource=True, name="noise")
        self.count = tf.Variable(0, name="count")
        self.last = tf.Variable(-1.0, name="last")
        self.gathered = tf.gather(self.table, self.rows, name="lookup")
        drawn = tf.random_uniform([2], seed=7)
        updates = tf.IndexedSlices(tf.ones([2, 3]), self.rows)
        self.step = tf.group(
            self.total.assign_add(tf.reduce_sum(self.gathered) + 1.0),
            tf.scatter_add(self.table, self.rows, updates.values).op,
            self.noise.assign_add(drawn),
            self.count.assign_add(1),
            self.last.assign(2.0 * tf.reduce_sum(self.gathered)),  # it is not read
        )
        self.plain = self.count.assign_add(100).op
        """A step that checks nothing."""
        self.variables = [self.table, self.total, self.noise, self.count, self.last]
        self.init = tf.global_variables_initializer()

    def feed(self, first: int) -> dict[Any, Any]:
        return {self.rows: [first, 1]}


def trained(model: Model, rows: list[int]) -> list[Any]:
    """The variables after these steps, each waited for."""
    with tf.Session(config=configured(0)) as sess:
        sess.run(model.init)
        for first in rows:
            sess.run(model.step, model.feed(first))
        return sess.run(model.variables)


def require_equal(found: list[Any], expected: list[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def begun(model: Model, ahead: int | None = AHEAD) -> tf.Session:
    """A session whose step has been compiled and run once, and can be sent from now on."""
    sess = tf.Session(config=configured(ahead))
    sess.run(model.init)
    sess.run(model.step, model.feed(0))
    [runner] = sess._prepare(model.step, model.feed(0))[0].plan.schedule.runners
    assert all(variant.executable.can_be_sent for variant in runner._variants._compiled)
    return sess


def test_steps_that_succeed_give_what_steps_that_are_waited_for_give() -> None:
    model = Model()
    with begun(model) as sess:
        for first in range(8):
            sess.run(model.step, model.feed(first))
        require_equal(sess.run(model.variables), trained(model, [0, *range(8)]))


@pytest.mark.usefixtures("late")
def test_no_step_after_a_failed_one_has_changed_anything() -> None:
    model = Model()
    with begun(model) as sess:
        sess.run(model.step, model.feed(3))
        sess.run(model.step, model.feed(BAD))
        sess.run(model.step, model.feed(4))
        sess.run(model.step, model.feed(5))
        with pytest.raises(tf.errors.InvalidArgumentError) as failure:
            sess.run(model.variables)
        text = str(failure.value)
        assert failure.value.op.name == "lookup"
        assert "99" in text and "test_steps_ahead.py" in text
        assert "step 4 of the session" in text and "the 2 steps sent after it" in text
        require_equal(sess.run(model.variables), trained(model, [0, 3]))
        sess.run(model.step, model.feed(4))  # it goes on, with the random numbers that come next
        require_equal(sess.run(model.variables), trained(model, [0, 3, 4]))


def test_the_next_step_says_so_when_the_outcome_is_known() -> None:
    model = Model()
    with begun(model) as sess:
        sess.run(model.step, model.feed(BAD))
        [step] = sess._task.sender()._steps
        step.held.block_until_ready()
        with pytest.raises(tf.errors.InvalidArgumentError, match="step 3 of the session"):
            sess.run(model.step, model.feed(1))
        require_equal(sess.run(model.variables), trained(model, [0]))


@pytest.mark.usefixtures("late")
def test_no_more_steps_than_allowed_are_ahead() -> None:
    model = Model()
    with begun(model) as sess:
        sess.run(model.step, model.feed(BAD))
        for _ in range(AHEAD - 1):
            sess.run(model.step, model.feed(1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="the 4 steps sent after it"):
            sess.run(model.step, model.feed(1))
        require_equal(sess.run(model.variables), trained(model, [0]))


NEXT: dict[str, Callable[[tf.Session, Model], Any]] = {
    "a fetch of the same step": lambda s, m: s.run([m.step, m.gathered], m.feed(2)),
    "a fetch that checks nothing": lambda s, m: s.run(m.total + 1.0),
    "an update that checks nothing": lambda s, m: s.run(m.plain),
    "a variable": lambda s, m: s.run(m.count),
    "a Python function": lambda s, m: s.run(tf.py_func(lambda: 1.0, [], tf.float32)),
    "a step with a deadline": lambda s, m: s.run(
        m.step, m.feed(2), options=tf.RunOptions(timeout_in_ms=60_000)
    ),
    "a step that is traced": lambda s, m: s.run(
        m.step,
        m.feed(2),
        options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
        run_metadata=tf.RunMetadata(),
    ),
    "a partial run": lambda s, m: s.partial_run(s.partial_run_setup([m.count], []), m.count),
    "a callable": lambda s, m: s.make_callable(m.count)(),
    "the saving of a checkpoint": lambda s, m: tf.train.Saver([m.count]).save(s, "/nonexistent/x"),
    "another feed": lambda s, m: s.run(m.total, {m.total: 2.0}),
}


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("what", NEXT)
def test_whatever_comes_next_raises_the_error(what: str) -> None:
    model = Model()
    with begun(model) as sess:
        sess.run(model.step, model.feed(BAD))
        with pytest.raises(tf.errors.InvalidArgumentError, match="step 3 of the session"):
            NEXT[what](sess, model)
        require_equal(sess.run(model.variables), trained(model, [0]))


@pytest.mark.usefixtures("late")
class TestTheEndOfASession:
    def test_closing_raises_the_error_and_closes(self) -> None:
        model = Model()
        sess = begun(model)
        sess.run(model.step, model.feed(BAD))
        with pytest.raises(tf.errors.InvalidArgumentError, match="sent ahead"):
            sess.close()
        with pytest.raises(RuntimeError, match="closed"):
            sess.run(model.count)

    def test_so_does_the_end_of_a_block(self) -> None:
        model = Model()
        with pytest.raises(tf.errors.InvalidArgumentError), begun(model) as sess:
            sess.run(model.step, model.feed(BAD))

    def test_but_it_hides_no_other_error(self, caplog: pytest.LogCaptureFixture) -> None:
        model = Model()
        with pytest.raises(KeyError), begun(model) as sess:
            sess.run(model.step, model.feed(BAD))
            raise KeyError
        assert "lookup" in caplog.text

    def test_clearing_all_variables_raises_it_too(self) -> None:
        model = Model()
        with begun(model) as sess:
            sess.run(model.step, model.feed(BAD))
            with pytest.raises(tf.errors.InvalidArgumentError, match="sent ahead"):
                tf.Session.reset("")
            sess.run(model.init)

    def test_an_interactive_session_is_no_longer_the_default(self) -> None:
        model = Model()
        sess = tf.InteractiveSession(config=configured())
        sess.run(model.init)
        sess.run(model.step, model.feed(0))
        sess.run(model.step, model.feed(BAD))
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.close()
        assert tf.get_default_session() is None

    def test_a_process_that_ends_says_what_failed(self) -> None:
        script = """
            import runnel as tf
            from tests.runtime.test_steps_ahead import BAD, Model, begun

            model = Model()
            sess = begun(model)
            sess.run(model.step, model.feed(BAD))
        """
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        assert "sent ahead failed" in result.stderr and "lookup" in result.stderr


@pytest.mark.usefixtures("late")
class TestThreads:
    def test_each_is_told_of_its_own_steps_and_the_others_go_on(self) -> None:
        model = Model()
        with begun(model) as sess:
            sess.run(model.step, model.feed(BAD))
            alive = threading.Event()
            found: list[Any] = []

            def run() -> None:
                sess.run(model.step, model.feed(2))
                found.append(sess.run(model.count))
                alive.wait()

            other = threading.Thread(target=run)
            other.start()
            try:
                with pytest.raises(tf.errors.InvalidArgumentError, match="step 3"):
                    sess.run(model.count)
            finally:
                alive.set()
                other.join()
            assert found == [2]
            assert sess.run(model.count) == 2

    def test_a_thread_that_has_ended_leaves_its_error_to_others(self) -> None:
        model = Model()
        with begun(model) as sess:
            other = threading.Thread(target=lambda: sess.run(model.step, model.feed(BAD)))
            other.start()
            other.join()
            with pytest.raises(tf.errors.InvalidArgumentError, match="lookup"):
                sess.run(model.step, model.feed(2))
            require_equal(sess.run(model.variables), trained(model, [0]))

    def test_many_at_once_lose_no_update(self) -> None:
        model = Model()
        with begun(model) as sess:
            not_run: list[int] = []
            """For each failure: the step itself, and those after it."""

            def run(seed: int) -> None:
                rng = random.Random(seed)
                for last in [False] * 60 + [True]:
                    try:
                        if last:
                            sess.run(model.count)
                        else:
                            sess.run(model.step, model.feed(rng.choice([2, 3, 4, BAD])))
                    except tf.errors.InvalidArgumentError as failure:
                        not_run.append(1 + steps_after(failure))

            threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            done = 1 + 4 * 60 - sum(not_run)
            assert not_run and sess.run(model.count) == done
            assert sess.run(model.table).sum() == done * 6


def steps_after(failure: Exception) -> int:
    """How many steps a failed one has kept from running."""
    text = str(failure)
    several = re.search(r"the (\d+) steps sent after it", text)
    return int(several[1]) if several else int("the step sent after it" in text)


class TestSettings:
    @pytest.mark.skipif(jax.default_backend() != "cpu", reason="there they are not")
    def test_on_a_cpu_steps_are_waited_for(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(settings, "current", settings.Settings())
        self.require_waiting(configured(None))

    @pytest.mark.skipif(jax.default_backend() == "cpu", reason="there they are")
    @pytest.mark.usefixtures("late")
    def test_on_an_accelerator_they_are_not(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(settings, "current", settings.Settings())
        model = Model()
        with tf.Session() as sess:
            sess.run(model.init)
            sess.run(model.step, model.feed(0))
            sess.run(model.step, model.feed(BAD))
            with pytest.raises(tf.errors.InvalidArgumentError, match="sent ahead"):
                sess.run(model.count)

    def test_a_session_can_have_every_step_waited_for(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(settings, "current", settings.Settings(steps_ahead=AHEAD))
        self.require_waiting(configured(0))

    def test_so_can_the_process(self, defaults: None) -> None:
        settings.set_steps_ahead(AHEAD)
        model = Model()
        with tf.Session(config=configured(None)) as sess:
            sess.run(model.init)
            sess.run(model.step, model.feed(0))
            sess.run(model.step, model.feed(BAD))  # nothing is raised
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(model.count)
            tf.config.experimental.set_synchronous_execution(True)
            assert tf.config.experimental.get_synchronous_execution()
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(model.step, model.feed(BAD))
        tf.config.experimental.set_synchronous_execution(None)
        assert not tf.config.experimental.get_synchronous_execution()

    def test_a_setting_that_does_not_exist_is_an_error(self) -> None:
        config = configured()
        [own] = config.graph_options.rewrite_options.custom_optimizers
        own.parameter_map["steps"].i = 3
        with pytest.raises(ValueError, match="steps_ahead"):
            tf.Session(config=config)
        with pytest.raises(ValueError, match="negative"):
            tf.Session(config=configured(-1))

    @pytest.fixture
    def defaults(self) -> Iterator[None]:
        before = settings.current
        yield
        settings.current = before

    @staticmethod
    def require_waiting(config: Any) -> None:
        model = Model()
        with tf.Session(config=config) as sess:
            sess.run(model.init)
            sess.run(model.step, model.feed(0))
            with pytest.raises(tf.errors.InvalidArgumentError) as failure:
                sess.run(model.step, model.feed(BAD))
            assert "sent ahead" not in str(failure.value)


def test_an_array_that_was_fed_may_change_at_once() -> None:
    model = Model()
    with begun(model) as sess:
        rows = np.array([0, 1], np.int32)
        for first in range(8):
            rows[:] = first, 1
            sess.run(model.step, {model.rows: rows})
            rows[:] = BAD
        require_equal(sess.run(model.variables), trained(model, [0, *range(8)]))


@pytest.mark.usefixtures("late")
def test_an_error_shows_what_was_fed_then() -> None:
    model = Model()
    with begun(model) as sess:
        rows = np.array([BAD, 1], np.int32)
        sess.run(model.step, {model.rows: rows})
        rows[:] = 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="99"):
            sess.run(model.count)


@pytest.mark.usefixtures("late")
def test_a_failure_may_depend_on_variables() -> None:
    """A step that fails by what the steps before it have made of a variable."""
    index = tf.Variable(0, name="index")
    table = tf.Variable(tf.zeros([6]), name="table")
    step = tf.group(
        table.assign_add(tf.fill([6], tf.gather(tf.range(6.0), index, name="lookup") + 1.0)),
        index.assign_add(1),
    )
    with tf.Session(config=configured(8)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(8):
            sess.run(step)
        with pytest.raises(tf.errors.InvalidArgumentError, match="= 6 is not in.*step 8 of") as f:
            sess.run(index)
        assert "the step sent after it" in str(f.value)
        assert sess.run(index) == 6
        np.testing.assert_array_equal(sess.run(table), np.full(6, 21.0))


def test_variables_that_are_reset_are_found_out() -> None:
    model = Model()
    with begun(model) as sess:
        sess.run(model.step, model.feed(1))
        sess.run(model.count)
        tf.Session.reset("")
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            sess.run(model.step, model.feed(1))
        last = model.variables.pop()
        sess.run([variable.initializer for variable in model.variables])
        for first in (0, 3, 4):
            sess.run(model.step, model.feed(first))
        model.variables.append(last)
        found, expected = sess.run(model.variables), trained(model, [0, 3, 4])
        require_equal(found[:2] + found[3:], expected[:2] + expected[3:])


@pytest.mark.usefixtures("late")
def test_two_different_steps_are_one_chain() -> None:
    model = Model()
    other = model.total.assign_add(1000.0 + tf.gather(tf.zeros([50]), model.rows)[0]).op
    with begun(model) as sess:
        sess.run(other, model.feed(1))
        sess.run(model.step, model.feed(BAD))
        sess.run(other, model.feed(1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="the step sent after it") as f:
            sess.run(model.count)
        assert f.value.op.name == "lookup"
        assert sess.run(model.total) == 1001.0
        sess.run(other, model.feed(BAD))
        sess.run(model.step, model.feed(1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="the step sent after it"):
            sess.run(model.count)
        assert sess.run([model.total, model.count]) == [1001.0, 1]


def test_what_only_checks_is_waited_for() -> None:
    x = tf.placeholder(tf.float32, [2])
    check = tf.check_numerics(x, "x").op
    with tf.Session(config=configured()) as sess:
        for _ in range(3):
            sess.run(check, {x: [0.0, 1.0]})
            with pytest.raises(tf.errors.InvalidArgumentError) as failure:
                sess.run(check, {x: [0.0, np.nan]})
            assert "sent ahead" not in str(failure.value)


@pytest.mark.usefixtures("late")
def test_failures_at_a_thousand_random_places_lose_nothing(failures: int = 1000) -> None:
    """Whoever repeats what the errors say was not run ends where nothing ever failed."""
    model = Model()
    rng = random.Random(3)
    done: list[int] = []
    waiting = [rng.randrange(8) for _ in range(4 * failures)]
    with begun(model, 7) as sess, tf.Session(config=configured(0)) as reference:
        number, sent = 2, []
        failed = 0
        while waiting or sent:
            kind = rng.random()
            try:
                number += 1
                if not waiting or kind < 0.1:
                    sess.run(model.count)
                    done += [first for _, first in sent]
                    sent = []
                elif kind < 0.15:
                    sent.append((number, waiting.pop()))
                    sess.run([model.step, model.total], model.feed(sent[-1][1]))
                elif kind < 0.4 and failed < failures:
                    sent.append((number, BAD))
                    sess.run(model.step, model.feed(BAD))
                else:
                    sent.append((number, waiting.pop()))
                    sess.run(model.step, model.feed(sent[-1][1]))
            except tf.errors.InvalidArgumentError as failure:
                failed += 1
                first_bad = next(i for i, (_, first) in enumerate(sent) if first == BAD)
                assert f"step {sent[first_bad][0]} of the session" in str(failure)
                done += [first for _, first in sent[:first_bad]]
                # Some of what was not run would have failed too; it is tried again, or not.
                waiting += [f for _, f in reversed(sent[first_bad + 1 :]) if f != BAD]
                sent = []
                if failed % 50 == 0:
                    assert sess.run(model.count) == 1 + len(done)
                    number += 1
        assert failed >= failures * 0.5
        assert len(done) == 4 * failures
        reference.run(model.init)
        for first in [0, *done]:
            reference.run(model.step, model.feed(first))
        require_equal(sess.run(model.variables), reference.run(model.variables))
