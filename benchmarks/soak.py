"""Training under faults: SIGKILL or SIGSTOP to any task, or its network cut, again and again.

`python -m benchmarks.soak --faults 1000` trains a linear model with one parameter server and three
workers by `runnel up`, every few seconds kills a task or stops it for a while, and prints what came
of it. Where it can (Linux, root) each task has a network of its own, which is cut for a while, too
(`--no-cuts` leaves that out, and the tasks talk as they do on one machine). It fails if training
does not go on to its loss, stands still for longer than that of TensorFlow 1.15 in such a soak, a
checkpoint is lost, or the memory of the launcher or of a task grows. With `--save` the row goes to
`benchmarks/results/soak.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import results
from benchmarks.interleaving import Spread
from benchmarks.results import Row, now
from benchmarks.severed_network import SeveredNetwork, is_possible
from runnel.distributed.progress_record import ProgressRecord
from runnel.train.checkpoint_state import latest_checkpoint

PROGRAM = Path(__file__).parent / "workloads" / "soak_program.py"
LOSS_BOUND = 0.01
MEMORY_BOUND = 1.3
"""How many times as much memory a process may have at the end as at the beginning."""
COMPILER_BYTES = 256 << 20
"""And what a task may have beside it: XLA, if its steps have been compiled meanwhile."""
STILL_BOUND = 6.3
"""Seconds without a step: TensorFlow 1.15's longest over 80 faults, with its device filters."""
LONGEST_CUT = 3.0
"""Seconds that a task is off the network: steps that need it stand still so long anyhow."""
LAUNCHER = "launcher"
START_SECONDS = 120.0
END_SECONDS = 120.0


@dataclass
class SoakResult:
    """What was seen."""

    faults: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    longest_without_progress: float = 0.0
    longest_after: str = ""
    global_step: int = 0
    lost_steps: int = 0
    loss: float | None = None
    status: int | None = None
    checkpoint_went_back: int = 0
    still_bound: float = STILL_BOUND
    """What is judged; another value where a machine is busy with other things."""
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes of each process when the first fault came, and after the last."""

    @property
    def failures(self) -> list[str]:
        """What training did not hold out, in words."""
        allowed = {name: 0 if name == LAUNCHER else COMPILER_BYTES for name in self.memory}
        grown = [
            name for name, (a, b) in self.memory.items() if b > MEMORY_BOUND * a + allowed[name]
        ]
        wrong = {
            f"the job ended with status {self.status}": self.status != 0,
            f"its loss is {self.loss}": self.loss is None or self.loss >= LOSS_BOUND,
            f"{self.checkpoint_went_back} checkpoints were lost": self.checkpoint_went_back > 0,
            f"memory grew: {', '.join(grown)}": bool(grown),
            f"no step for {self.longest_without_progress:.1f} s after {self.longest_after}": (
                self.longest_without_progress > self.still_bound
            ),
        }
        return [what for what, is_so in wrong.items() if is_so]

    @property
    def passed(self) -> bool:
        """True when training has held out."""
        return not self.failures

    def row(self) -> Row:
        """The line of the table."""
        begin, end = self.memory.get(LAUNCHER, (1, 0))
        largest = max((b for name, (_, b) in self.memory.items() if name != LAUNCHER), default=0)
        still = self.longest_without_progress
        notes = (
            f"{self.faults} faults in {self.seconds:.0f} s; the longest after {self.longest_after}",
            f"{self.global_step:,} steps, {self.lost_steps:,} of them made again; the loss is "
            f"{self.loss:.1e}"
            if self.loss is not None
            else "no loss",
            f"memory: the launcher has {end / begin:.2f} times what it had, the largest task "
            f"{largest / 2**20:.0f} MiB",
        )
        return Row(
            "soak",
            "longest time without a step, tasks killed, stopped and cut off at random",
            "s",
            {"runnel": Spread.of([still]), "TensorFlow 1.15": Spread.of([STILL_BOUND])},
            must_show=f"at most {STILL_BOUND} s, to its loss, no checkpoint lost, memory flat",
            passed=self.passed,
            notes=notes,
            measured=now(),
        )


class Soak:
    """One run."""

    def __init__(
        self, folder: Path, workers: int, seed: int, network: SeveredNetwork | None = None
    ) -> None:
        """With a ``network``, tasks are in it, and its links are cut beside the other faults."""
        self._folder = folder
        self._network = network
        self._random = random.Random(seed)
        self.result = SoakResult()
        self._enough = folder / "enough"
        self._lines: list[str] = []
        self._begun = time.monotonic()
        self._last_fault = "the start"
        self._done = threading.Event()
        self._job_folder: Path | None = None
        command = [sys.executable, "-m", "runnel", "up", "--ps", "1", "--workers", str(workers)]
        command += ["--restarts", "1000000"]
        environment = {**os.environ, "TMPDIR": str(folder)}
        if network is not None:
            network.write_command(folder / "task")
            command.append(str(folder / "task"))
            environment |= {"RUNNEL_INSECURE": "1", "RUNNEL_TRANSPORT": "tcp"}
        command += [str(PROGRAM), str(folder / "model")]
        self.process = subprocess.Popen(
            [*command, str(self._enough)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(
        self, faults: int, every: float, tell: Callable[[str], object] | None = None
    ) -> SoakResult:
        """Injects the faults, lets the job end, and tells what was seen."""
        watcher = threading.Thread(target=self._watch, daemon=True)
        try:
            self._wait_for("the first step was made", START_SECONDS)
            self._settle()
            begun, memory = time.monotonic(), self._memory()
            watcher.start()
            for number in range(1, faults + 1):
                self._fault()
                if tell is not None and number % max(1, faults // 10) == 0:
                    tell(f"{number} of {faults} faults, step {self.result.global_step:,}")
                time.sleep(self._random.uniform(0.5, 1.5) * every)
            self.result.seconds = time.monotonic() - begun
            self._settle()
            after = self._memory()
            self.result.memory = {
                name: (memory[name], after[name]) for name in memory.keys() & after
            }
            self._done.set()
            watcher.join()
            self._enough.touch()
            self.result.status = self.process.wait(END_SECONDS)
            self._reader.join()
        finally:
            self._done.set()
            self.process.kill()
            self.process.wait()
        losses = [re.search(r"loss (\S+)$", line) for line in self._lines]
        self.result.loss = max((float(m[1]) for m in losses if m), default=None)
        lost = (re.search(r": (\d+) steps? after it", line) for line in self._lines)
        self.result.lost_steps = sum(int(m[1]) for m in lost if m)
        return self.result

    @property
    def log(self) -> str:
        """What the job has said."""
        return "\n".join(self._lines)

    def _fault(self) -> None:
        tasks = tasks_of(self.process.pid)
        if not tasks:
            return
        pid, name = self._random.choice(tasks)
        kinds = ["SIGKILL", "SIGKILL", "SIGSTOP"]
        if self._network is not None:
            kinds += ["a cut", "a cut"]
        kind = self._random.choice(kinds)
        self._last_fault = f"{kind} to {name}"
        self._note(self._last_fault)
        try:
            if kind == "a cut" and self._network is not None:
                self._network.cut(name)
                try:
                    time.sleep(self._random.uniform(0.2, LONGEST_CUT))
                finally:
                    self._network.mend(name)
            elif kind == "SIGKILL":
                os.kill(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self._random.uniform(0.2, 2.0))
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return
        self.result.faults += 1
        self.result.kinds = dict(Counter(self.result.kinds) + Counter({self._last_fault: 1}))

    def _settle(self) -> None:
        """Waits until every worker has made a step after the last fault."""
        begun, deadline = time.time(), time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            records = self._records()
            if len(records) >= 3 and all(r.runs and r.step_at > begun for r in records):
                return
            time.sleep(0.1)

    def _memory(self) -> dict[str, int]:
        """Bytes of each process."""
        processes = [(self.process.pid, LAUNCHER), *tasks_of(self.process.pid)]
        return {name: _memory(pid) for pid, name in processes}

    def _records(self) -> list[ProgressRecord]:
        if self._job_folder is None:
            found = re.search(r"--job (\S+)", self.log)
            self._job_folder = Path(found[1]) if found else None
        if self._job_folder is None:
            return []
        read = map(ProgressRecord.read, self._job_folder.glob("worker-*.progress"))
        return [record for record in read if record is not None]

    def _watch(self) -> None:
        """Notes for how long no task has made a step, and whether checkpoints go back."""
        last, newest = time.time(), 0
        while not self._done.wait(0.02):
            made = [r.step_at for r in self._records() if r.runs]
            latest = max(made, default=last)
            now = time.time()
            gap = max(latest - last, now - max(latest, last))
            if gap > max(2.0, self.result.longest_without_progress):
                self._note(f"no progress for {gap:.1f} s")
            if gap > self.result.longest_without_progress:
                self.result.longest_without_progress = gap
                self.result.longest_after = self._last_fault
            last = max(last, latest)
            found = re.search(r"-(\d+)$", latest_checkpoint(str(self._folder / "model")) or "")
            if found:
                self.result.checkpoint_went_back += int(found[1]) < newest
                newest = self.result.global_step = int(found[1])

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._note(line.rstrip("\n"))

    def _note(self, line: str) -> None:
        self._lines.append(f"{time.monotonic() - self._begun:7.2f} {line}")

    def _wait_for(self, text: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{text!r} did not come in\n{self.log}")
            time.sleep(0.05)


def tasks_of(launcher: int) -> list[tuple[int, str]]:
    """The processes of the tasks that have become their program, and their names."""
    found = []
    for thread in Path(f"/proc/{launcher}/task").iterdir():
        for pid in (thread / "children").read_text().split():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            [config] = [v[10:] for v in variables if v.startswith(b"TF_CONFIG=")] or [b""]
            if config and b"-I\0-S\0" not in command:
                task = json.loads(config)["task"]
                found.append((int(pid), f"{task['type']}:{task['index']}"))
    return found


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two faults")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-cuts", action="store_true", help="leave the network alone")
    parser.add_argument("--log", type=Path, help="where the log of the job goes")
    parser.add_argument("--save", action="store_true", help="keep the row for docs/benchmarks.md")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        network = None
        if not given.no_cuts and is_possible():
            tasks = ["ps:0", *(f"worker:{index}" for index in range(given.workers))]
            network = stack.enter_context(SeveredNetwork(tasks))
        soak = Soak(folder, given.workers, given.seed, network)
        try:
            result = soak.run(given.faults, given.every, partial(print, flush=True))
        finally:
            if given.log is not None:
                given.log.write_text(soak.log)
    print(json.dumps(asdict(result), indent=2))
    if given.save:
        print(results.save("soak", results.describe_machine(), [result.row()]))
    print("passed" if result.passed else f"FAILED: {'; '.join(result.failures)}")
    sys.exit(not result.passed)


if __name__ == "__main__":
    main()
