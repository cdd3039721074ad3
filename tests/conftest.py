"""Every test starts with an empty default graph, every pass and every kernel is checked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Tests describe behaviour on the CPU wherever they run; JAX_PLATFORMS=cuda tries another device.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import runnel as tf  # noqa: E402
from runnel.passes import rewrite  # noqa: E402
from runnel.runtime import verification  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh_default_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.fixture(autouse=True, scope="session")
def _checked_passes() -> Iterator[None]:
    rewrite.check_between_passes = verification.enabled = True
    yield
    rewrite.check_between_passes = verification.enabled = False
