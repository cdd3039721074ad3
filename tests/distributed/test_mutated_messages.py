"""Changed messages of clients are refused or understood otherwise; the task goes on."""

from __future__ import annotations

import os

import pytest

from tests.distributed.mutated_messages import try_many

# All: python -m tests.distributed.mutated_messages --count 100000
_FACTOR = float(os.environ.get("RUNNEL_FUZZ", "1"))


@pytest.mark.timeout(120 + 60 * _FACTOR)
def test_a_changed_message_of_a_client_harms_no_task():
    wrong: list[str] = []
    assert try_many(range(int(100 * _FACTOR)), wrong.append) > 30
    assert not wrong, "\n".join(wrong[:5])
