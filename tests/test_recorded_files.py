"""Files that TensorFlow 1.15 and 2.21 have written are read, and their jobs go on.

``tools/record_files.py`` has written them. Where ``RUNNEL_TENSORFLOW_1`` names an interpreter with
TensorFlow 1.15, that reads what is written here.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import runnel as tf

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tools" / "record_files.py"
FOLDERS = sorted((ROOT / "tests" / "recorded" / "files").iterdir())
OLD = os.environ.get("RUNNEL_TENSORFLOW_1")

_spec = importlib.util.spec_from_file_location("record_files", SCRIPT)
assert _spec is not None and _spec.loader is not None
record_files = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record_files)

BY_VERSION = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


@BY_VERSION
@pytest.mark.parametrize("job", [job.__name__ for job in record_files.JOBS])
def test_a_job_goes_on_with_their_losses(folder, job):
    record_files.read_job(tf, str(folder / job))


@BY_VERSION
@pytest.mark.parametrize("kind", ["types", "model", "events"])
def test_their_files_are_read(folder, kind):
    getattr(record_files, f"read_{kind}")(tf, str(folder / kind))


def test_both_versions_are_there():
    assert [path.name for path in FOLDERS] == ["tensorflow-1.15", "tensorflow-2.21"]


def test_what_is_written_here_is_read_here(tmp_path):
    record_files.write(tf, str(tmp_path))
    record_files.read(tf, str(tmp_path))


@pytest.mark.skipif(OLD is None, reason="RUNNEL_TENSORFLOW_1 names no interpreter")
def test_the_older_tensorflow_reads_what_is_written_here(tmp_path):
    assert OLD is not None
    arguments = ["write", str(tmp_path)]
    subprocess.run([sys.executable, str(SCRIPT), "runnel", *arguments], check=True, cwd=ROOT)
    read = [OLD, str(SCRIPT), "tensorflow", "read", str(tmp_path)]
    done = subprocess.run(read, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
