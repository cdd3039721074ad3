"""Keeping freed memory: asked for in the environment, seen in the page faults of a process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource, runnel, numpy

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    numpy.ones(1 << 22)
before = faults()
for _ in range(5):
    numpy.ones(1 << 22)
print(faults() - before)
"""


def _faults(value: str) -> int:
    environment = {**os.environ, "RUNNEL_KEEP_FREED_MEMORY": value}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="GNU's C library")
def test_freed_memory_stays_only_where_that_is_asked_for():
    # Five arrays of 32 MiB: at least one page fault for each 2 MiB unless the memory was kept.
    assert _faults("1") < 40
    assert _faults("0") >= 80
