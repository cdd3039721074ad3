"""A task keeps some of the memory that its steps free."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
import runnel as tf

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        # By itself the C library keeps about twice the largest.
        gradients = [np.ones(1 << 20, np.uint8) for _ in range(16)]
        del gradients
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

server = tf.train.Server.create_local_server()
faults()
print(faults())
server.stop()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library is told")
def test_a_task_maps_the_memory_of_its_steps_once(monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    pages = 20 * (16 << 20) // 4096
    assert int(ran.stdout) < pages / 10
