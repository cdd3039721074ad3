"""The clocks of tasks: estimated from pings, and one in the timeline of a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runnel as tf
from runnel.distributed.clock_offset import ClockOffset
from tests.distributed.clusters import Process, cluster_of

pytestmark = pytest.mark.timeout(120)

_AHEAD = """
import json, sys, time
clock = time.time_ns
time.time_ns = lambda: clock() + 1000 * 10**9
import runnel as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
server.join()
"""


@given(
    ahead=st.integers(-(10**12), 10**12),
    trips=st.lists(st.tuples(st.integers(1, 10**8), st.integers(1, 10**8)), min_size=1, max_size=9),
)
def test_the_error_is_at_most_half_of_the_shortest_round_trip(ahead, trips):
    clock, now = ClockOffset(), 10**18
    assert clock.nanoseconds == 0
    for there, back in trips:
        clock.note(now, now + there + ahead, now + there + 500 + ahead, now + there + 500 + back)
        now += 10**9
    assert abs(clock.nanoseconds - ahead) <= min(map(sum, trips)) // 2 + 1


def test_a_timeline_has_one_clock():
    spec = cluster_of(ps=1, worker=1)
    process, worker = Process(spec, "ps", 0, program=_AHEAD), tf.train.Server(spec, "worker", 0)
    try:
        with tf.device("/job:ps/task:0"):
            there = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0)
        with tf.device("/job:worker/task:0"):
            here = tf.add(there, 1.0)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        with tf.Session(worker.target) as sess:
            metadata = tf.RunMetadata()
            sess.run(here, options=options, run_metadata=metadata)
        starts = [
            node.all_start_micros
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
        ]
        devices = {device.device for device in metadata.step_stats.dev_stats}
        assert any("/job:ps" in name for name in devices)
        assert max(starts) - min(starts) < 100 * 10**6  # of a thousand seconds
    finally:
        worker.stop()
        process.kill()
