"""What a program gives in each way in which a step can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as tf
from tests.control_flow_programs.program import Program
from tests.control_flow_programs.script import run_script
from tests.execution_modes import MODES, config_for

Outcome = tuple[list[list[np.ndarray]], list[int]]
"""For each feed what is fetched; how much is left in each queue."""

COUNTED = "event-driven, by counts"
INTERPRETED = ("default", "structured", "event-driven", COUNTED)
WAYS = (*INTERPRETED, "compiled", "event-driven, compiled")
"""The modes of ``tests.execution_modes``, a session with no options, and a step that is traced.

A traced step has an entry for each node: all are run by pending counts.
"""


def graph_of(program: Program) -> Callable[[str], Outcome]:
    """Builds ``program``; the function gives its outcome in one of :data:`WAYS`."""
    with tf.Graph().as_default() as graph:
        run = run_script(program)
    devices = 2 if "devices" in program.features else 1

    def outcome(way: str) -> Outcome:
        config = tf.ConfigProto(device_count={"CPU": devices})
        traced: tuple[Any, ...] = ()
        if way == COUNTED:
            config = config_for("event-driven", devices)
            traced = (tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata())
        elif way in MODES:
            config = config_for(way, devices)
        with graph.as_default():
            return run(config, *traced)

    return outcome


def require_same(found: Outcome, expected: Outcome) -> None:
    """An AssertionError where two outcomes differ by more than rounding does."""
    assert found[1] == expected[1], f"{found[1]} elements are left, not {expected[1]}"
    for feed, (mine, theirs) in enumerate(zip(found[0], expected[0], strict=True)):
        for index, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            np.testing.assert_allclose(
                one, other, rtol=1e-7, atol=1e-9, err_msg=f"feed {feed}, fetch {index}"
            )
