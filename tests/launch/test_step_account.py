"""What the records of tasks say of a job."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.distributed.progress_record import ProgressFile, ProgressRecord
from runnel.launch.step_account import StepAccount
from runnel.launch.task_layout import LaunchedTask

CHIEF, OTHER = LaunchedTask("worker", 0), LaunchedTask("worker", 1)


def _record(chief, began, began_at, step, step_at, runs=1) -> ProgressRecord:
    return ProgressRecord(chief, began, began_at, step, step_at, runs, began_at + 0.5)


def test_the_first_step_is_told_once_with_its_time():
    account = StepAccount(begun=100.0)
    begun = ProgressRecord(True, 0, 102.0, 0, 102.0)
    assert account.observe({CHIEF: begun}) == []
    told = account.observe({CHIEF: begun.after(1, 103.0)})
    assert told == ["the first step was made 3.0 s after the start"]
    assert account.observe({CHIEF: begun.after(1, 103.0).after(2, 104.0)}) == []


def test_steps_after_the_checkpoint_of_any_task_are_lost_once():
    account = StepAccount(0.0)
    before = {CHIEF: _record(True, 0, 1.0, 12, 5.0), OTHER: _record(False, 0, 1.5, 13, 5.1)}
    account.observe(before)
    assert account.step == 13
    after = {CHIEF: _record(True, 10, 6.0, 11, 6.2), OTHER: before[OTHER]}
    assert account.observe(after) == ["training goes on from step 10: 3 steps after it are lost"]
    assert (account.lost, account.step) == (3, 11)
    assert account.observe(after) == []
    # The other's new session, and what it reports, say nothing of losses.
    assert account.observe({**after, OTHER: _record(False, 11, 7.0, 12, 7.1)}) == []
    assert account.observe({CHIEF: _record(True, 12, 9.0, 12, 9.0, 0), OTHER: before[OTHER]}) == [
        "training goes on from step 12: no step is lost"
    ]


def test_steps_count_that_were_overwritten_before_anyone_looked():
    account = StepAccount(0.0)
    chief, other = _record(True, 0, 1.0, 12, 5.0), _record(False, 0, 1.5, 13, 5.1)
    account.observe({CHIEF: chief, OTHER: other})
    # Both went on; the chief restored step 10 and began again; the other made a step after that.
    chief = chief.after(20, 6.0).anew(10, 7.0).after(11, 7.2)
    other = other.after(21, 6.1).after(12, 7.3)
    told = account.observe({CHIEF: chief, OTHER: other})
    assert told == ["training goes on from step 10: 11 steps after it are lost"]
    # What they fell from then says nothing of the next time.
    told = account.observe({CHIEF: chief.after(13, 8.0).anew(13, 9.0), OTHER: other})
    assert told == ["training goes on from step 13: no step is lost"]


def test_a_session_that_begins_from_a_checkpoint_of_an_earlier_job_loses_nothing():
    account = StepAccount(0.0)
    assert account.observe({CHIEF: _record(True, 500, 1.0, 500, 1.0, 0)}) == []
    assert account.lost == 0


def test_workers_that_were_faster_than_the_chief_when_the_job_began_have_lost_nothing():
    account = StepAccount(0.0)
    told = account.observe(
        {CHIEF: _record(True, 6, 2.0, 6, 2.0, 0), OTHER: _record(False, 0, 1.0, 6, 1.9)}
    )
    assert not any("goes on" in text for text in told) and account.lost == 0


@settings(deadline=None)
@given(
    st.booleans(),
    st.integers(0, 2**63),
    st.floats(0, 1e10),
    st.integers(0, 2**63),
    st.floats(0, 1e10),
    st.integers(0, 2**40),
)
def test_a_record_is_read_as_it_was_written(chief, began, began_at, step, step_at, runs):
    record = ProgressRecord(chief, began, began_at, step, step_at, runs).after(step // 2, 1e9)
    found = ProgressRecord.from_bytes(record.to_bytes())
    assert found is not None
    assert (found.chief, found.began, found.step, found.runs) == (chief, began, step // 2, runs + 1)
    assert found.fell_from == record.fell_from
    assert abs(found.fell_from_at - record.fell_from_at) < 1e-5


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_anything_else_is_no_record(content):
    found = ProgressRecord.from_bytes(content)
    assert found is None or len(content) == len(found.to_bytes())


def test_a_file_holds_the_last_record(tmp_path: Path):
    path = tmp_path / "progress"
    assert ProgressRecord.read(path) is None
    file = ProgressFile(str(path))
    assert ProgressRecord.read(path) is None
    record = ProgressRecord(True, 0, 1.0, 0, 1.0)
    for step in (1, 2, 100_000):
        record = record.after(step, 2.0)
        file.write(record)
    file.close()
    file.close()
    assert ProgressRecord.read(path) == record
