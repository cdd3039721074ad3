"""One damaged file after another, read in this process, and what is wrong with how it went."""

from __future__ import annotations

import linecache
import random
import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import runnel
from runnel.graph.errors import OpError
from tests.mutated_files.subject import Subject
from tests.mutated_files.subjects import SUBJECTS

SECONDS = 20
MEGABYTES = 300
"""What reading one file of some kilobytes may take."""
_SOURCES = str(Path(runnel.__file__).parent)


class TookTooLong(BaseException):
    """No Exception: nothing that is tried may catch it."""


def _alarm(number: int, frame: Any) -> None:
    raise TookTooLong


def try_many(kind: str, seeds: range, tell: Callable[[str], None]) -> int:
    """Reads a file of ``kind`` damaged in the way of each seed; how many it read all the same.

    ``tell`` is told what is wrong: an error that is not of ours, a wrong value, much time or
    memory.
    """
    subject, harmless = SUBJECTS[kind], 0
    before = signal.signal(signal.SIGALRM, _alarm)
    try:
        with tempfile.TemporaryDirectory() as temporary:
            whole = Path(temporary, "whole")
            whole.mkdir()
            subject.make(whole)
            right = subject.read(whole)
            for seed in seeds:
                folder = Path(temporary, "damaged")
                shutil.copytree(whole, folder)
                wrong, read = _try_one(subject, folder, random.Random(f"{kind} {seed}"), right)
                harmless += read
                if wrong:
                    tell(f"{kind} {seed}: {wrong}")
                shutil.rmtree(folder)
    finally:
        signal.signal(signal.SIGALRM, before)
    return harmless


def _try_one(
    subject: Subject, folder: Path, chance: random.Random, right: Any
) -> tuple[str | None, bool]:
    """What is wrong, if anything; and whether the file was read."""
    may_differ = subject.damage(folder, chance)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong, read = _read_one(subject, folder, right, may_differ)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) >> 10
    if wrong is None and grown > MEGABYTES:
        wrong = f"took {grown} MB"
    return wrong, read


def _read_one(
    subject: Subject, folder: Path, right: Any, may_differ: bool
) -> tuple[str | None, bool]:
    signal.alarm(SECONDS)
    try:
        found = subject.read(folder)
    except subject.expected as error:
        return _unexpected(error), False
    except TookTooLong:
        return f"took over {SECONDS} s\n{traceback.format_exc()}", False
    except Exception:  # noqa: BLE001 (what is looked for)
        return traceback.format_exc(), False
    finally:
        signal.alarm(0)
    if not may_differ and not _means(found, right):
        return f"{found} was read instead of {right}", True
    return None, True


def _means(found: Any, right: Any) -> bool:
    """Whether all that was read was written; nothing tells of a record that is gone whole."""
    if isinstance(right, list):
        rest = iter(right)
        return all(record in rest for record in found)
    return bool(found.items() <= right.items()) if isinstance(right, dict) else found == right


def _unexpected(error: Exception) -> str | None:
    """The trace of an error that nobody meant to raise: no ``raise`` of ours is its origin."""
    if isinstance(error, OpError):  # which code that was written while running raises, too
        return None
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    if last.filename.startswith(_SOURCES) and line.startswith("raise"):
        return None
    return "".join(traceback.format_exception(error))
