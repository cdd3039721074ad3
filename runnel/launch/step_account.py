"""What the tasks' records say of a job: its first step, and the steps that it has lost."""

from __future__ import annotations

from runnel.distributed.progress_record import ProgressRecord
from runnel.launch.task_layout import LaunchedTask


class StepAccount:
    """Follows the records of all tasks of a job; pure.

    A chief's new session begins with a checkpoint: steps that were made after that, by whichever
    task, are lost. What a task reports later of the time before counts for nothing.
    """

    def __init__(self, begun: float) -> None:
        """``begun`` is when the job was started, in seconds since the epoch."""
        self._begun = begun
        self._records: dict[LaunchedTask, ProgressRecord] = {}
        self._restored_at = 0.0
        self.first_step_after: float | None = None
        """Seconds from the job's start to the end of its first step."""
        self.lost = 0
        """How many steps were lost in all."""

    @property
    def step(self) -> int | None:
        """The furthest global step that was seen since the last restore."""
        return max(
            (r.step for r in self._records.values() if r.step_at >= self._restored_at),
            default=None,
        )

    def record(self, task: LaunchedTask) -> ProgressRecord | None:
        """The latest record of a task."""
        return self._records.get(task)

    def observe(self, records: dict[LaunchedTask, ProgressRecord]) -> list[str]:
        """Takes what was read of all tasks; returns what the user should be told."""
        told = []
        chiefs = [
            (record.began_at, task)
            for task, record in records.items()
            if record.chief and record.began_at > self._restored_at
        ]
        for began_at, task in sorted(chiefs):
            told += self._restored(records, records[task].began, began_at)
        self._records.update(records)
        firsts = [record.first_at for record in records.values() if record.runs]
        if self.first_step_after is None and firsts:
            self.first_step_after = min(firsts) - self._begun
            told.append(f"the first step was made {self.first_step_after:.1f} s after the start")
        return told

    def _restored(
        self, records: dict[LaunchedTask, ProgressRecord], began: int, began_at: float
    ) -> list[str]:
        seen = [*self._records.values(), *records.values()]
        # A task that went on after the restore, before anyone looked, tells what it fell from.
        steps = [(r.step, r.step_at) for r in seen if r.runs]
        steps += [(r.fell_from, r.fell_from_at) for r in seen]
        before = [step for step, at in steps if self._restored_at <= at < began_at]
        is_first = self._restored_at == 0.0  # others may have made steps before it could tell
        self._restored_at = began_at
        if is_first or not before:
            return []
        lost = max(0, max(before) - began)
        self.lost += lost
        what = {0: "no step is lost", 1: "1 step after it is lost"}.get(
            lost, f"{lost} steps after it are lost"
        )
        return [f"training goes on from step {began}: {what}"]
