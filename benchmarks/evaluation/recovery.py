"""How long a job that `runnel up` looks after stands still when one of its tasks is killed."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.soak import Soak, tasks_of
from runnel.distributed.progress_record import ProgressRecord

WORKERS = 3
VICTIMS = {"worker:1": "a worker", "worker:0": "the chief", "ps:0": "the parameter server"}
DEADLINE = 90.0


class RecoveringJob(Soak):
    """The soak's job, whose tasks are killed one at a time and waited for."""

    def begin(self) -> None:
        """Waits until every worker trains."""
        self._wait_for("the first step was made", DEADLINE)
        self._settle()

    def end(self) -> None:
        """Kills the launcher; the kernel ends the tasks with it."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def kill(self, victim: str) -> dict[str, Any]:
        """Kills a task; says how long nobody made a step, and when every worker trained again."""
        [pid] = [pid for pid, name in tasks_of(self.process.pid) if name == victim]
        said = len(self._lines)
        killed = time.time()
        os.kill(pid, signal.SIGKILL)
        still, last = 0.0, killed
        while time.time() < killed + DEADLINE:
            records = self._records()
            latest = max([last, *(record.step_at for record in records if record.runs)])
            still = max(still, latest - last)
            last = latest
            if len(records) == WORKERS and self._is_back(victim, records, killed):
                lost = re.findall(r": (\d+) steps? after it", "\n".join(self._lines[said:]))
                back = max(record.step_at for record in self._new(victim, records))
                return {
                    "victim": victim,
                    "standstill": still,
                    "back": max(0.0, back - killed),
                    "lost": sum(map(int, lost)),
                }
            time.sleep(0.005)
        raise TimeoutError(f"{victim} was killed, and did not come back in {DEADLINE:.0f} s")

    def _is_back(self, victim: str, records: list[ProgressRecord], killed: float) -> bool:
        new = self._new(victim, records)
        return all(record.runs and record.began_at > killed for record in new) and all(
            record.step_at > killed for record in records
        )

    def _new(self, victim: str, records: list[ProgressRecord]) -> list[ProgressRecord]:
        """The records of those that need a new session: the victim, or all workers of a server."""
        job, _, index = victim.partition(":")
        return [records[int(index)]] if job == "worker" else records

    def _records(self) -> list[ProgressRecord]:
        """In the order of the workers."""
        super()._records()  # finds the folder
        if self._job_folder is None:
            return []
        paths = [self._job_folder / f"worker-{index}.progress" for index in range(WORKERS)]
        return [record for path in paths if (record := ProgressRecord.read(path)) is not None]


def measure(folder: Path, kills: int) -> dict[str, Any]:
    """Kills each kind of task some times."""
    job = RecoveringJob(folder, WORKERS, seed=0)
    try:
        job.begin()
        found = []
        for _ in range(kills):
            for victim in VICTIMS:
                found.append(job.kill(victim))
                job._settle()
                time.sleep(1.2)  # so that there is a checkpoint after it
        return {"workers": WORKERS, "save_seconds": 1, "kills": found}
    finally:
        job.end()
