"""On an accelerator only (``JAX_PLATFORMS=cuda make test``): running out of its memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(
    os.environ["JAX_PLATFORMS"].split(",")[0] == "cpu", reason="this needs an accelerator"
)
def test_running_out_of_memory_is_explained_and_the_session_stays_usable():
    """In a process of its own, which takes a small share of the memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.out_of_memory"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the session stayed usable each time" in done.stdout
