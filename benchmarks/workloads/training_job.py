"""The distributed digit classifier of `examples/` as a job whose tasks are processes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, Any

from benchmarks.interleaving import REPOSITORY
from benchmarks.workloads.cluster import end_with_parent, free_addresses

Program = dict[str, Any]
"""The settings of `examples/distributed_digits.py`."""


def start_task(
    cluster: dict[str, list[str]],
    job: str,
    index: int,
    program: Program,
    hook: str,
    errors: IO[str] | None = None,
) -> subprocess.Popen[str]:
    """A task as a process, which ends with this one; the hook of `main` is a worker's."""
    task = {"cluster": cluster, "job": job, "index": index, "program": program, "hook": hook}
    return subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(task)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=REPOSITORY,
    )


class Job:
    """A parameter server and workers that begin together."""

    def __init__(self, workers: int, program: Program, delays: list[float]) -> None:
        addresses = free_addresses(1 + workers)
        self.cluster = {"ps": addresses[:1], "worker": addresses[1:]}
        self._processes = [start_task(self.cluster, "ps", 0, program, "begin")]
        for index in range(workers):
            slowed = {**program, "delay": delays[index]}
            self._processes.append(start_task(self.cluster, "worker", index, slowed, "begin"))

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

    server = tf.train.Server(task["cluster"], task["job"], task["index"])
    if task["job"] == "ps":
        print("ready", flush=True)
        server.join()
        return
    from examples import distributed_digits

    class Begin(tf.train.SessionRunHook):
        """Says that the worker is ready, and waits to be told to begin."""

        begun = False

        def after_create_session(self, session: Any, coord: Any) -> None:
            if not self.begun:
                print("ready", flush=True)
                sys.stdin.readline()
                self.begun = True

    class Report(tf.train.SessionRunHook):
        """Says at which step the job is, after each of the worker's."""

        def begin(self) -> None:
            self._step = tf.train.get_global_step()

        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(self._step)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            print(int(run_values.results), flush=True)

    settings = distributed_digits.Settings(**task["program"])
    place = distributed_digits.Task(task["cluster"], task["job"], task["index"])
    hook = {"begin": Begin, "report": Report}[task["hook"]]()
    distributed_digits.train(place, server.target, settings, [hook])


if __name__ == "__main__":
    main()
