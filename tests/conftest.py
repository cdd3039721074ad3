"""Every test starts with an empty default graph, every pass and every kernel is checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import runnel as tf
from runnel.passes import rewrite
from runnel.runtime import verification


@pytest.fixture(autouse=True)
def _fresh_default_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.fixture(autouse=True, scope="session")
def _checked_passes() -> Iterator[None]:
    rewrite.check_between_passes = verification.enabled = True
    yield
    rewrite.check_between_passes = verification.enabled = False
