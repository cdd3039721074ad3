"""Every test of control flow runs in each of the ways in which a step can run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.execution_modes import MODES, forced


@pytest.fixture(params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with forced(request.param):
        yield request.param
