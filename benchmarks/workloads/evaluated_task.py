"""A task of a cluster that is told from outside what to run: by lines of JSON on its input.

A worker answers `prepare` when it has built and initialised its program, `begin` when its steps go
on as they will, and `stop` with what it has seen.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
import traceback
from typing import Any

from benchmarks.evaluation.step_times import StepTimes
from benchmarks.frontends import load_frontend
from benchmarks.workloads.cluster import end_with_parent
from benchmarks.workloads.evaluated_programs import PROGRAMS, WorkerProgram

WARM_STEPS = 6


class Accelerator:
    """Waits in place of one, and remembers for how long."""

    def __init__(self, times: StepTimes, seed: int) -> None:
        self._times = times
        self._source = random.Random(seed)
        self.waits: list[float] = []

    def work(self) -> None:
        """One step of it."""
        begun = time.perf_counter()
        threading.Event().wait(self._times.draw(self._source))
        self.waits.append(time.perf_counter() - begun)


class EvaluatedWorker:
    """Runs one program at a time, in a thread, until it is told to stop."""

    def __init__(self, frontend: str, cluster: dict[str, list[str]], index: int) -> None:
        self._tf = load_frontend(frontend)
        self._index = index
        self._server = self._tf.train.Server(
            self._tf.train.ClusterSpec(cluster), "worker", index, config=_config(self._tf)
        )

    def prepare(self, program: str, run: int, arguments: dict[str, Any]) -> None:
        """Builds the graph, in a container of the run's own; the first worker initialises."""
        tf = self._tf
        self._accelerator, self._container = None, f"run{run}"
        arguments = dict(arguments)
        if times := arguments.pop("times", None):
            self._accelerator = Accelerator(StepTimes(**times), 1000 * run + self._index)
            arguments["wait"] = self._accelerator.work
        with tf.Graph().as_default(), tf.container(self._container):
            self._program: WorkerProgram = PROGRAMS[program](tf, self._index, **arguments)
            config = _config(tf)
            config.device_filters.extend(["/job:ps", f"/job:worker/task:{self._index}"])
            self._session = tf.Session(self._server.target, config=config)
            if self._index == 0:
                self._session.run(self._program.initializer)
            self._program.begin(self._session)
            feeds = self._program.feeds
            self._step = self._session.make_callable(self._program.fetches, list(feeds))
            self._fed = list(feeds.values())

    def begin(self) -> None:
        """Starts the loop, and returns when the first steps are over."""
        self._stop, self._warm = threading.Event(), threading.Event()
        self._ends: list[float] = []
        self._failure: str | None = None
        self._steps: list[int] = []
        self._loop = threading.Thread(target=self._run, daemon=True)
        self._loop.start()
        self._warm.wait()
        if self._failure is not None:
            raise RuntimeError(self._failure)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                found = self._step(*self._fed)
                self._ends.append(time.perf_counter())
                if len(found) > 2:
                    self._steps.append(int(found[2]))
                if len(self._ends) == WARM_STEPS:
                    self._warm.set()
        except Exception:
            self._failure = traceback.format_exc()
        self._warm.set()

    def count(self) -> int:
        """How many steps have ended."""
        return len(self._ends)

    def end_soon(self) -> None:
        """Begins no further step."""
        self._stop.set()

    def release(self) -> None:
        """Lets go who waits for an update."""
        self._program.release(self._session)

    def forget(self) -> None:
        """Ends the session, and frees what the run has left on the servers."""
        self._program.end(self._session)
        self._session.close()
        self._tf.Session.reset(self._server.target, [self._container])

    def results(self) -> dict[str, Any]:
        """When steps ended, on the clock that all processes share, and the global step then."""
        self._loop.join(60.0)
        if self._failure is not None:
            raise RuntimeError(self._failure)
        waits = self._accelerator.waits if self._accelerator is not None else []
        return {"ends": self._ends, "waits": waits, "steps": self._steps}


def _config(tf: Any) -> Any:
    """Every task computes with one thread: the tasks share the cores."""
    return tf.ConfigProto(intra_op_parallelism_threads=1)


def _answer(value: Any) -> None:
    print(json.dumps(value), flush=True)


def main() -> None:
    """A task."""
    task = json.loads(sys.argv[1])
    end_with_parent()
    if task["job"] == "ps":
        tf = load_frontend(task["frontend"])
        spec = tf.train.ClusterSpec(task["cluster"])
        server = tf.train.Server(spec, "ps", task["index"], config=_config(tf))
        _answer("ready")
        server.join()
        return
    worker = EvaluatedWorker(task["frontend"], task["cluster"], task["index"])
    _answer("ready")
    for line in sys.stdin:
        told = json.loads(line)
        what = told.pop("do")
        try:
            _answer({"answer": getattr(worker, what)(**told)})
        except Exception:
            _answer({"failure": traceback.format_exc()})


if __name__ == "__main__":
    main()
