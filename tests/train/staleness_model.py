"""A job of workers without processes: the rules of ``membership.py`` in any order of events.

Beside the table it keeps what really happened, and checks after each event what is promised.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from runnel.train import membership
from runnel.train.membership import GO, NOBODY, NUMPY, PUT_OUT, Members

LEASE = 10


class BrokenPromise(AssertionError):
    """Something happened that must not."""


def promise(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenPromise(what)


class Applied(NamedTuple):
    worker: int
    life: int


class Worker:
    """What a process knows, and what has happened to its step."""

    def __init__(self, index: int, count: int) -> None:
        self.index = index
        self.mine = np.arange(count) == index
        self.life = NOBODY
        self.phase = "out"
        self.entered_at = 0
        """How many updates there were when it was allowed to begin."""
        self.admitted_at = 0


class Job:
    """Workers, their table, and every update in the order in which it was applied."""

    def __init__(self, count: int, staleness: int) -> None:
        self.staleness = staleness
        self.members = membership.nobody(count)
        self.workers = [Worker(index, count) for index in range(count)]
        self.now = 100
        self.lives = 0
        self.updates: list[Applied] = []
        self.events: list[str] = []

    # Events -----------------------------------------------------------------------------------

    def join(self, worker: Worker) -> None:
        self.lives += 1
        worker.life, worker.phase = self.lives, "idle"
        self.members = membership.join(
            NUMPY, self.members, worker.mine, worker.life, self.now, LEASE
        )

    def enter(self, worker: Worker) -> Any:
        self.members, told = membership.enter(
            NUMPY, self.members, worker.mine, worker.life, self.now, LEASE, self.staleness
        )
        if told == GO:
            worker.phase, worker.entered_at = "entered", len(self.updates)
        elif told == PUT_OUT:
            self.join(worker)
        return told

    def admit(self, worker: Worker) -> None:
        if membership.admits(NUMPY, self.members, worker.mine, worker.life, self.now, LEASE):
            worker.phase, worker.admitted_at = "admitted", self.now
        else:
            self._end_step(worker, False)

    def apply(self, worker: Worker) -> None:
        self._update(worker)
        self._end_step(worker, True)

    def crash(self, worker: Worker, chance: random.Random) -> None:
        """It dies; an admitted step may have been applied, with or without its clock."""
        if worker.phase == "admitted" and chance.random() < 0.7:
            self._update(worker)
            if chance.random() < 0.7:
                self._end_step(worker, True)
        worker.phase, worker.life = "out", NOBODY

    def renew(self, worker: Worker) -> None:
        self.members = membership.renew(
            NUMPY, self.members, worker.mine, worker.life, self.now, LEASE
        )

    def leave(self, worker: Worker) -> None:
        self.members = membership.leave(NUMPY, self.members, worker.mine, worker.life)
        worker.phase, worker.life = "out", NOBODY

    def pass_time(self, amount: int) -> None:
        """Applying an admitted step takes less than half a lease."""
        for worker in self.workers:
            if worker.phase == "admitted" and self.now + amount - worker.admitted_at > LEASE // 2:
                self.apply(worker)
        self.now += amount

    def _end_step(self, worker: Worker, admitted: bool) -> None:
        added = membership.change(NUMPY, self.members, worker.mine, worker.life, admitted)
        columns = [column.copy() for column in self.members]
        for place, amount in zip((1, 2, 4), added, strict=True):
            columns[place][worker.index] += amount
        self.members = Members(*columns)
        worker.phase = "idle"

    def _update(self, worker: Worker) -> None:
        promise(
            self.members.incarnation[worker.index] == worker.life,
            f"a step of worker {worker.index} was applied after the others went on without it",
        )
        meanwhile: dict[Applied, int] = {}
        for update in self.updates[worker.entered_at :]:
            meanwhile[update] = meanwhile.get(update, 0) + 1
        meanwhile.pop(Applied(worker.index, worker.life), None)
        most = max(meanwhile.values(), default=0)
        promise(
            most <= 2 * self.staleness + 1,
            f"another worker was applied {most} times while worker {worker.index} made a step",
        )
        self.updates.append(Applied(worker.index, worker.life))

    # Promises ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Nobody who has begun a step is more than the staleness ahead of a member."""
        incarnation, clock, entered, _, _ = self.members
        present = incarnation != NOBODY
        running = present & (entered == 1)
        if running.any():
            ahead = int(clock[running].max() - clock[present].min())
            promise(ahead <= self.staleness, f"one that runs is {ahead} steps ahead")

    def finish(self) -> None:
        """Those that are alive all make progress, whoever else has died."""
        alive = [worker for worker in self.workers if worker.phase != "out"]
        self.pass_time(LEASE + 1)
        before = len(self.updates)
        # Whoever is ahead goes on when the others have caught up.
        for _ in range(self.staleness + 3 if self.staleness < membership.UNBOUNDED else 2):
            for worker in alive:
                self.renew(worker)
            for worker in alive:
                if worker.phase == "idle" and self.enter(worker) == PUT_OUT:
                    self.enter(worker)
                if worker.phase == "entered":
                    self.admit(worker)
                if worker.phase == "admitted":
                    self.apply(worker)
                self.check()
        done = {update.worker for update in self.updates[before:]}
        promise(done >= {worker.index for worker in alive}, "somebody stands still")


def random_event(job: Job, chance: random.Random) -> None:
    """One event that could happen now."""
    worker = chance.choice(job.workers)
    draw = chance.random()
    if draw < 0.15:
        job.events.append("time")
        job.pass_time(chance.choice((1, 2, 4, 7, LEASE, 2 * LEASE)))
    elif worker.phase == "out":
        job.events.append(f"join {worker.index}")
        job.join(worker)
    elif draw < 0.20:
        job.events.append(f"crash {worker.index}")
        job.crash(worker, chance)
    elif draw < 0.23 and worker.phase != "admitted":
        job.events.append(f"leave {worker.index}")
        job.leave(worker)
    elif draw < 0.40:
        job.events.append(f"renew {worker.index}")
        job.renew(worker)
    else:
        step = {"idle": job.enter, "entered": job.admit, "admitted": job.apply}[worker.phase]
        job.events.append(f"{step.__name__} {worker.index}")
        step(worker)
    job.check()


def run_schedule(seed: int, events: int = 25) -> Job:
    """A job with random events; raises BrokenPromise with what led to it."""
    chance = random.Random(seed)
    job = Job(chance.choice((2, 3, 4)), chance.choice((0, 0, 1, 2, 3, membership.UNBOUNDED)))
    try:
        for worker in job.workers:
            job.join(worker)
        for _ in range(events):
            random_event(job, chance)
        job.finish()
    except BrokenPromise as error:
        raise BrokenPromise(
            f"seed {seed}, staleness {job.staleness}: {error}, after {', '.join(job.events)}"
        ) from None
    return job
