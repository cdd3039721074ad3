"""Changed messages of clients and tasks are refused or understood otherwise; the task goes on."""

from __future__ import annotations

import os

import pytest

from tests.distributed import mutated_frames, mutated_messages

# All: make fuzz
_FACTOR = float(os.environ.get("RUNNEL_FUZZ", "1"))


@pytest.mark.timeout(120 + 60 * _FACTOR)
def test_a_changed_message_of_a_client_harms_no_task():
    wrong: list[str] = []
    assert mutated_messages.try_many(range(int(100 * _FACTOR)), wrong.append) > 30
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.timeout(120 + 60 * _FACTOR)
def test_a_changed_frame_of_a_task_harms_no_other(monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "3")  # for how long others are dialled
    wrong: list[str] = []
    assert mutated_frames.try_many(range(int(150 * _FACTOR)), wrong.append) > 3
    assert not wrong, "\n".join(wrong[:5])
