"""Damages files of each kind in many ways: ``python -m tests.mutated_files --count 100000``.

Each batch is read by a process of its own, so that a crash is seen as one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.mutated_files.subjects import SUBJECTS
from tests.mutated_files.trial import try_many

BATCH = 1000


def _batch(kind: str, start: int, count: int) -> None:
    harmless = try_many(kind, range(start, start + count), lambda text: print(text, flush=True))
    print(f"HARMLESS {harmless}")


def main() -> None:
    """Runs all batches; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default=",".join(SUBJECTS), help="separated by commas")
    parser.add_argument("--count", type=int, default=1000, help="how many of each kind")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--batch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        _batch(options.kinds, options.start, options.count)
        return
    wrong = 0
    for kind in options.kinds.split(","):
        harmless = 0
        for start in range(options.start, options.start + options.count, BATCH):
            count = min(BATCH, options.start + options.count - start)
            command = [sys.executable, "-m", "tests.mutated_files", "--batch", "--kinds", kind]
            command += ["--start", str(start), "--count", str(count)]
            process = subprocess.run(command, capture_output=True, text=True)
            said, _, number = process.stdout.rpartition("HARMLESS ")
            if process.returncode or said:
                wrong += 1
                print(f"{said}\nexit status {process.returncode}\n{process.stderr[-2000:]}")
            harmless += int(number) if number.strip().isdigit() else 0
        print(f"{kind}: {options.count} damaged files, {harmless} of them read all the same")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
