"""A job whose tasks are killed and stopped: a few faults of ``benchmarks/soak.py``."""

from __future__ import annotations

import sys

import pytest

from benchmarks.soak import Soak


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_training_goes_on_to_its_loss_whichever_task_is_killed_or_stopped(tmp_path):
    soak = Soak(tmp_path, workers=3, seed=3)
    result = soak.run(faults=6, every=0.8)
    assert result.passed, f"{result}\n{soak.log}"
    assert result.faults >= 4
