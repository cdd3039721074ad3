"""Steps with queues over several devices: what is sent, when, and where everything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.state.step_context import StepContext
from tests.both_tiers import COMPILED, INTERPRETED

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


def session(level: int) -> tf.Session:
    config = tf.ConfigProto(device_count={"CPU": 3})
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=config)


class Events(list[str]):
    """What is sent, and when the step goes to sleep, in order."""

    on_sleep: Callable[[], Any] = staticmethod(lambda: None)


@pytest.fixture
def events(monkeypatch) -> Events:
    noted = Events()
    start, sleep = Transfer.start, StepContext.sleep

    def noted_start(self: Transfer, value: Any, *observer: Any) -> Any:
        noted.append(f"{self.tensor}: {self.sender.index} to {self.device.index}")
        return start(self, value, *observer)

    def noted_sleep(self: StepContext) -> None:
        noted.append("asleep")
        noted.on_sleep()
        sleep(self)

    monkeypatch.setattr(Transfer, "start", noted_start)
    monkeypatch.setattr(StepContext, "sleep", noted_sleep)
    return noted


@TIERS
def test_a_value_is_sent_once_to_each_device_that_uses_it(level, events):
    queue = tf.FIFOQueue(4, tf.float32, [[2]])
    with tf.device("/cpu:0"):
        taken = queue.dequeue(name="taken")
    with tf.device("/cpu:1"):
        v = tf.Variable([1.0, 1.0], name="v")
        a, b = taken + v, taken * v
        update = v.assign_add(a)
    with tf.device("/cpu:2"), tf.control_dependencies([update]):
        total = tf.add(a, b, name="total") - taken
    with session(level) as sess:
        sess.run(v.initializer)
        state = np.float32([1.0, 1.0])
        for number in range(3):
            element = np.float32([number, 2.0])
            sess.run(queue.enqueue([element]))
            del events[:]
            found, after = sess.run([total, v])
            np.testing.assert_array_equal(found, element + state + element * state - element)
            state = state + element + state
            np.testing.assert_array_equal(after, state)
            names = [(n.op.name.split("/")[-1]) for n in (a, b)]
            assert Counter(events) == Counter(
                ["taken: 0 to 1", "taken: 0 to 2", *(f"{name}: 1 to 2" for name in names)]
            )


@TIERS
def test_each_operation_runs_where_it_was_placed(level):
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    with tf.device("/cpu:1"):
        a = tf.square(queue.dequeue(), name="a")
    with tf.device("/cpu:2"):
        b = tf.negative(a, name="b")
    metadata = tf.RunMetadata()
    full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with session(level) as sess:
        sess.run(queue.enqueue(3.0))
        assert sess.run(b, options=full, run_metadata=metadata) == -9.0
        *_, prepared = sess._prepared.values()
        plan = prepared.plan.schedule
        found = {
            node.op.name: runner.segment.device.short_name
            for runner in plan.runners
            for node in runner.segment.nodes
        }
        assert found == {"a": "CPU:1", "b": "CPU:2"}
        explained = tf.explain_placement(sess, b)
    assert [(c.tensor, c.source[-1], c.destination[-1]) for c in explained.crossings][-1] == (
        *("a", "1", "2"),
    )
    traced = {
        s.device[-5:]: [n.node_name for n in s.node_stats] for s in metadata.step_stats.dev_stats
    }
    assert any(name.startswith("a") for name in traced["CPU:1"])
    assert [name.partition("/")[0] for name in traced["CPU:2"]] == ["b"]
    sends = [n for g in metadata.partition_graphs for n in g.node if n.op == "_Send"]
    assert [s.input[0] for s in sends if s.input[0] == "a"] == ["a"]


@TIERS
def test_what_exists_is_sent_before_the_step_sleeps(level, events):
    x = tf.placeholder(tf.float32, [], name="x")
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    with tf.device("/cpu:1"):
        early = tf.square(x, name="early")
    with tf.device("/cpu:2"):
        late = tf.add(early, queue.dequeue(), name="late")
    with session(level) as sess:
        events.on_sleep = sess.make_callable(queue.enqueue(1.0))
        assert sess.run(late, {x: 3.0}) == 10.0
    assert events[:3] == ["x: 0 to 1", "early: 1 to 2", "asleep"]


@TIERS
def test_a_variable_that_is_read_for_several_queues_is_sent_once(level, events):
    with tf.device("/cpu:1"):
        v = tf.Variable(2.0, name="v")
    first, second = (tf.FIFOQueue(1, tf.float32, [[]]) for _ in range(2))
    with tf.device("/cpu:2"):
        results = [first.dequeue() * v, second.dequeue() - v]
    with session(level) as sess:
        sess.run(v.initializer)
        sess.run([first.enqueue(5.0), second.enqueue(7.0)])
        del events[:]
        assert sess.run(results) == [10.0, 5.0]
        assert events.count("v/read: 1 to 2") == 1
