"""A contender that lives in its own process and runs a round whenever it is asked.

Each framework gets a process of its own: no other framework's thread pools, allocator or garbage
collector disturb it. All of them are alive at once and only one works at any moment, so rounds can
alternate without paying for an import in each.

The two halves of the protocol stand together here: `Resident` is the side that asks, `serve` the
side that works. They exchange one JSON object a line over the worker's standard input and output.
"""

from __future__ import annotations

import gc
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, BinaryIO

from benchmarks.interleaving import (
    REPOSITORY,
    ContenderFailed,
    Sample,
    environment,
    last_line,
)
from benchmarks.workload import Facts, Workload, load_workload

START_WORKER = "from benchmarks.resident import serve; serve()"


class Resident:
    """A contender with a process of its own that can load one workload after another.

    with Resident("runnel") as contender:
        contender.load("benchmarks.workloads.dispatch:constant", {"frontend": "runnel"})
        contender.calibrate(0.15)
        print(contender.sample().wall)
    """

    def __init__(self, name: str, deadline: float = 120.0, platform: str = "cpu") -> None:
        self.name = name
        self.deadline = deadline
        self.iterations = 1
        self._unread = b""
        # A file and not a pipe: nobody reads it while the worker runs, and a full pipe would block.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the contender
        self._process = subprocess.Popen(
            [sys.executable, "-c", START_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(platform),
            cwd=REPOSITORY,
        )

    def __enter__(self) -> Resident:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; it is killed when it does not follow its closed input."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def load(self, workload: str, arguments: dict[str, Any]) -> None:
        """Build a workload in the worker, in place of the one before."""
        self.iterations = 1
        self._ask("load", workload=workload, arguments=arguments)

    def calibrate(self, seconds: float, warm_up: float) -> None:
        """Warm up, then fix how often the work is done in a round so that a round lasts that long.

        The warm-up covers what happens only in the beginning: lazy imports, a plan's preparation,
        its promotion from interpreted to compiled.
        """
        self.iterations = self._ask("calibrate", seconds=seconds, warm_up=warm_up)["iterations"]

    def sample(self) -> Sample:
        """Run one round."""
        reply = self._ask("round", iterations=self.iterations)
        return Sample(reply["wall"], reply["cpu"], reply["resident_bytes"])

    def facts(self) -> Facts:
        """What the workload tells about itself."""
        return dict(self._ask("facts"))

    def _ask(self, request: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([request, arguments]).encode() + b"\n")
            self._process.stdin.flush()
            reply: dict[str, Any] = json.loads(self._read_line())
        except (OSError, EOFError):
            status = self._process.wait(5.0)
            raise ContenderFailed(f"ended with status {status}: {self._error_output()}") from None
        if "failure" in reply:
            raise ContenderFailed(reply["failure"])
        return reply

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        give_up = time.monotonic() + self.deadline
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, give_up - time.monotonic()))
            if not ready:
                self._process.kill()
                raise ContenderFailed(f"no answer within {self.deadline:.0f} s")
            received = os.read(descriptor, 1 << 16)
            if not received:
                raise EOFError
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _error_output(self) -> str:
        self._errors.seek(0)
        return last_line(self._errors.read().decode(errors="replace"))


def serve() -> None:
    """Answer the requests of a `Resident` until the input ends: the worker's side."""
    # What a library prints must not mix with the answers: it goes to the error output instead.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker = _Worker()
    requests: dict[str, Callable[..., dict[str, Any]]] = {
        "load": worker.load,
        "calibrate": worker.calibrate,
        "round": worker.round,
        "facts": worker.facts,
    }
    for line in sys.stdin.buffer:
        request, arguments = json.loads(line)
        try:
            reply = requests[request](**arguments)
        except Exception as error:
            traceback.print_exc()
            reply = {"failure": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        _send(answers, reply)


def _send(answers: BinaryIO, reply: dict[str, Any]) -> None:
    answers.write(json.dumps(reply).encode() + b"\n")
    answers.flush()


class _Worker:
    """The state of a worker between requests: its workload."""

    def __init__(self) -> None:
        self._workload = Workload(run=lambda iterations: None)

    def load(self, workload: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._workload = load_workload(workload, arguments)
        return {}

    def calibrate(self, seconds: float, warm_up: float) -> dict[str, Any]:
        run = self._workload.run
        warm = time.perf_counter() + warm_up
        run(1)
        while time.perf_counter() < warm:
            run(1)
        iterations = 1
        while True:
            started = time.perf_counter()
            run(iterations)
            spent = time.perf_counter() - started
            if spent >= seconds / 4:
                return {"iterations": max(1, math.ceil(iterations * seconds / spent))}
            iterations *= 2

    def round(self, iterations: int) -> dict[str, Any]:
        run = self._workload.run
        # The others have just used the caches; a tenth of the work brings them back.
        if iterations >= 10:
            run(iterations // 10)
        gc.collect()  # A round pays for its own garbage, not for that of the round before.
        cpu, wall = time.process_time(), time.perf_counter()
        run(iterations)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {
            "wall": wall / iterations,
            "cpu": cpu / iterations,
            "resident_bytes": resident_bytes(),
        }

    def facts(self) -> dict[str, Any]:
        return self._workload.facts()


def resident_bytes() -> int:
    """The process's resident memory; 0 where the system does not say (no `/proc`)."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
