"""Tests of a module share a cluster: its threads have to be gone when the module is done."""

from __future__ import annotations

import pytest

from tests.conftest import leaves_no_thread

_no_leaked_threads = pytest.fixture(autouse=True, scope="module", name="_no_leaked_threads")(
    leaves_no_thread
)
