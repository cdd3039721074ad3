"""The distributed digit classifier of `examples/` as a job whose tasks are processes.

Workers begin together: each says that it is ready, and waits to be told.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.interleaving import REPOSITORY
from benchmarks.workloads.cluster import end_with_parent, free_addresses

Program = dict[str, Any]
"""The settings of `examples/distributed_digits.py`."""


class Job:
    """A parameter server and workers; they end with this process."""

    def __init__(self, workers: int, program: Program, delays: list[float]) -> None:
        addresses = free_addresses(1 + workers)
        self.cluster = {"ps": addresses[:1], "worker": addresses[1:]}
        self._processes = [self._start("ps", 0, program)]
        self._processes += [
            self._start("worker", index, {**program, "delay": delays[index]})
            for index in range(workers)
        ]

    def _start(self, job: str, index: int, program: Program) -> subprocess.Popen[str]:
        task = {"cluster": self.cluster, "job": job, "index": index, "program": program}
        return subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    def begin(self) -> None:
        """Has the workers begin, when all of them can."""
        for process in self._processes:
            assert process.stdout is not None
            while (line := process.stdout.readline()) != "ready\n":
                if not line:
                    raise RuntimeError("a task of the job ended before it began")
        for process in self._processes[1:]:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def end(self) -> None:
        """Kills the tasks, and waits for that."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()


def main() -> None:
    """A task of a job."""
    task = json.loads(sys.argv[1])
    end_with_parent()
    import runnel as tf
    from examples import distributed_digits

    class Begin(tf.train.SessionRunHook):
        """Waits to be told."""

        begun = False

        def after_create_session(self, session: Any, coord: Any) -> None:
            if not self.begun:
                print("ready", flush=True)
                sys.stdin.readline()
                self.begun = True

    server = tf.train.Server(task["cluster"], task["job"], task["index"])
    if task["job"] == "ps":
        print("ready", flush=True)
        server.join()
        return
    settings = distributed_digits.Settings(**task["program"])
    place = distributed_digits.Task(task["cluster"], task["job"], task["index"])
    distributed_digits.train(place, server.target, settings, [Begin()])


if __name__ == "__main__":
    main()
