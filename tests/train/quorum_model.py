"""Elastic synchronous training without processes: the rules of ``quorum.py``, in any order.

Each event is what happens at one place at one time: a gradient reaches one of two accumulators, the
table changes, a ring is heard. Beside the table it keeps what really happened, and checks what is
promised.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from runnel.train import membership, quorum
from runnel.train.membership import NOBODY, NUMPY
from runnel.train.quorum import Givers
from tests.train.staleness_model import LEASE, BrokenPromise, promise


class Gradient(NamedTuple):
    row: int
    life: int
    step: int
    attempt: int
    """How many steps the worker has made before."""


class Accumulator:
    """As those of the runtime: drops what is of an earlier step than its own."""

    def __init__(self) -> None:
        self.step = 0
        self.held: list[Gradient] = []

    def add(self, gradient: Gradient) -> None:
        if gradient.step >= self.step:
            self.held.append(gradient)

    def take(self) -> list[Gradient]:
        promise(bool(self.held), "the chief takes from an accumulator that has no gradient")
        taken, self.held = self.held, []
        self.step += 1
        return taken


class Worker:
    """What a process knows, and where it is in its step."""

    def __init__(self, index: int, count: int) -> None:
        self.index = index
        self.mine = np.arange(count) == index
        self.life = NOBODY
        self.phase = "out"
        self.step = 0
        self.attempt = 0
        self.last_renewal = 0


class Job:
    """Workers, a chief that is none of them, the table, two accumulators, bells."""

    def __init__(self, count: int, required: int) -> None:
        self.required = required
        self.givers = Givers(*(np.zeros(count, np.int64) for _ in Givers._fields))
        self.workers = [Worker(index, count) for index in range(count)]
        self.accumulators = [Accumulator(), Accumulator()]
        self.bells = [0] * count
        self.chief_bell = 0
        self.chief = "look"
        self.taken: list[list[Gradient]] = []
        self.updates: list[list[Gradient]] = []
        self.step = 0
        self.now = 100
        self.lives = 0
        self.extra: set[Gradient] = set()
        """What was added, but not counted, since the chief began meanwhile."""
        self.events: list[str] = []

    # A worker's events ------------------------------------------------------------------------

    def join(self, worker: Worker) -> None:
        self.lives += 1
        worker.life, worker.phase, worker.last_renewal = self.lives, "compute", self.now
        self.givers = quorum.join(NUMPY, self.givers, worker.mine, worker.life, self.now, LEASE)
        worker.step = self.step

    def go_on(self, worker: Worker) -> None:
        """The next event of its step."""
        gradient = Gradient(worker.index, worker.life, worker.step, worker.attempt)
        if worker.phase in ("compute", "half"):
            self.accumulators[worker.phase == "half"].add(gradient)
            worker.phase = "half" if worker.phase == "compute" else "added"
        elif worker.phase == "added":
            if self.givers.incarnation[worker.index] == NOBODY:
                self.extra.add(gradient)
            self.givers = quorum.give(
                NUMPY, self.givers, worker.mine, worker.life, worker.step, self.now, LEASE
            )
            worker.phase, worker.last_renewal = "ring", self.now
        elif worker.phase == "ring":
            self.chief_bell += 1
            worker.phase = "look"
        elif worker.phase == "look":
            waits = quorum.waits(NUMPY, self.givers, worker.mine, worker.life, self.step)
            worker.phase = "listen" if waits else "awake"
        elif worker.phase == "listen" and self.bells[worker.index]:
            self.bells[worker.index] = 0
            worker.phase = "look"
        elif worker.phase == "awake":
            worker.step, worker.phase = self.step, "compute"
            worker.attempt += 1

    def renew(self, worker: Worker) -> None:
        worker.last_renewal = self.now
        self.givers = membership.renew(
            NUMPY, self.givers, worker.mine, worker.life, self.now, LEASE
        )
        self.chief_bell += 1
        self.bells[worker.index] += 1

    def leave(self, worker: Worker) -> None:
        """Between two steps; the one that began is not made."""
        self.givers = membership.leave(NUMPY, self.givers, worker.mine, worker.life)
        self.chief_bell += 1
        worker.phase, worker.life = "out", NOBODY

    def crash(self, worker: Worker) -> None:
        worker.phase, worker.life = "out", NOBODY

    # The chief's events -----------------------------------------------------------------------

    def go_on_chief(self) -> None:
        if self.chief == "look":
            if quorum.suffices(NUMPY, self.givers, self.step, self.required, self.now):
                self.decide()
            else:
                self.chief = "listen"
        elif self.chief == "listen" and self.chief_bell:
            self.chief_bell, self.chief = 0, "look"
        elif self.chief in ("take 0", "take 1"):
            which = int(self.chief[-1])
            self.taken.append(self.accumulators[which].take())
            self.chief = "apply" if which else "take 1"
        elif self.chief == "apply":
            self.apply()
        elif self.chief == "wake":
            waiting = quorum.waiting(NUMPY, self.givers, self.step - 1)
            self.bells = [bell + int(rung) for bell, rung in zip(self.bells, waiting)]
            self.chief = "look"
        elif self.chief in ("empty 0", "empty 1"):
            which = int(self.chief[-1])
            self.accumulators[which].held = []
            self.accumulators[which].step = self.step
            self.chief = "dismiss" if which else "empty 1"
        elif self.chief == "dismiss":
            self.extra.update(*(accumulator.held for accumulator in self.accumulators))
            self.givers = Givers(*(np.zeros_like(column) for column in self.givers))
            self.bells = [bell + 1 for bell in self.bells]
            self.chief = "look"

    def decide(self) -> None:
        """Nobody that was heard of within a lease is left out, unless enough others gave."""
        given = {g.row for g in self.accumulators[0].held if g.step == self.step}
        given &= {g.row for g in self.accumulators[1].held if g.step == self.step}
        if len(given) < self.required:
            for worker in self.workers:
                in_row = worker.life == self.givers.incarnation[worker.index] != NOBODY
                alive = in_row and worker.last_renewal + LEASE >= self.now
                promise(
                    not alive or worker.index in given,
                    f"worker {worker.index} is alive and was not waited for",
                )
        self.taken, self.chief = [], "take 0"

    def apply(self) -> None:
        first, second = self.taken
        for gradient in first + second:
            promise(gradient.step == self.step, f"{gradient} is in the update of {self.step}")
        for part in (first, second):
            counted = [(g.row, g.life) for g in part if g not in self.extra]
            promise(len(set(counted)) == len(counted), f"one gave twice: {counted}")
        self.updates.append([g for g in first if g in second and g not in self.extra])
        promise(bool(self.updates[-1]), "no worker's gradients are all in the update")
        self.step += 1
        self.chief = "wake"

    def restart_chief(self) -> None:
        """It dies wherever it is, and begins again."""
        self.chief = "empty 0"

    # All of it --------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything that can happen without time, in turn, for some updates."""
        for _ in range(60):
            self.go_on_chief()
            for worker in self.workers:
                self.go_on(worker)

    def finish(self, renews: bool) -> None:
        """Those that are alive all make progress, whoever else has died."""
        alive = {worker.index for worker in self.workers if worker.phase != "out"}
        if renews:
            self.settle()
            self.now += LEASE + 1
            for worker in self.workers:
                if worker.index in alive:
                    self.renew(worker)
        before = len(self.updates)
        self.settle()
        done = {gradient.row for update in self.updates[before:] for gradient in update}
        promise(done >= alive, f"only {done} of {alive} go on")


def random_event(job: Job, chance: random.Random, faults: bool) -> None:
    """One event that could happen now."""
    worker = chance.choice(job.workers)
    draw = chance.random()
    if not faults:
        event = f"worker {worker.index}" if draw < 0.7 else "chief"
    elif draw < 0.06:
        event = "time"
    elif worker.phase == "out":
        event = f"join {worker.index}"
    elif draw < 0.09:
        event = f"crash {worker.index}"
    elif draw < 0.12 and worker.phase == "compute":
        event = f"leave {worker.index}"
    elif draw < 0.18:
        event = f"renew {worker.index}"
    elif draw < 0.20:
        event = "restart"
    else:
        event = f"worker {worker.index}" if draw < 0.75 else "chief"
    job.events.append(event)
    happen(job, event, worker, chance)


def happen(job: Job, event: str, worker: Worker, chance: random.Random) -> None:
    """Makes the event."""
    if event == "time":
        job.now += chance.choice((1, 4, LEASE, 2 * LEASE))
    elif event == "chief":
        job.go_on_chief()
    elif event == "restart":
        job.restart_chief()
    else:
        change = {"join": job.join, "crash": job.crash, "leave": job.leave, "renew": job.renew}
        change.get(event.split()[0], job.go_on)(worker)


def run_schedule(seed: int, faults: bool, events: int = 120) -> Job:
    """A job with random events; raises BrokenPromise with what led to it."""
    chance = random.Random(seed)
    count = chance.choice((1, 2, 3, 4))
    job = Job(count, chance.randint(max(1, count - 1), count))
    try:
        for worker in job.workers:
            job.join(worker)
        for _ in range(events):
            random_event(job, chance, faults)
        job.finish(renews=faults)
    except BrokenPromise as error:
        raise BrokenPromise(f"seed {seed}: {error}, after {', '.join(job.events)}") from None
    return job
