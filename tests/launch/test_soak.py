"""A job whose tasks are killed and stopped: some faults of ``benchmarks/soak.py``."""

from __future__ import annotations

import math
import sys

import pytest

from benchmarks.soak import Soak, SoakResult


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_training_goes_on_to_its_loss_whichever_task_is_killed_or_stopped(tmp_path):
    soak = Soak(tmp_path, workers=3, seed=3)
    soak.result.still_bound = math.inf  # other tests may run beside it
    result = soak.run(faults=30, every=0.8)
    assert result.passed, f"{result.failures}, {result}\n{soak.log}"
    assert result.faults >= 20


def test_the_verdict_is_of_everything_that_was_seen():
    good = {"status": 0, "loss": 1e-4, "memory": {"launcher": (10, 11), "ps:0": (100, 120)}}
    assert SoakResult(**good, longest_without_progress=2.5).passed
    assert SoakResult(**good).row().passed
    for wrong, what in [
        ({"status": 1}, "status 1"),
        ({"loss": None}, "loss"),
        ({"checkpoint_went_back": 1}, "checkpoints were lost"),
        ({"memory": {"launcher": (10, 10), "worker:1": (100, 1 << 29)}}, "grew: worker:1"),
        ({"longest_without_progress": 6.4, "longest_after": "SIGKILL to ps:0"}, "no step for 6.4"),
    ]:
        [said] = SoakResult(**{**good, **wrong}).failures
        assert what in said
