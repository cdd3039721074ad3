"""The command ``runnel``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import runnel as tf
from runnel.checkpoint.bundle import BundleWriter
from runnel.command_line import main
from runnel.graph import dtypes
from runnel.native import cache_folder
from runnel.runtime.compile import entry_store
from runnel.train.checkpoint_state import update_checkpoint_state


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _kept(*contents: bytes) -> int:
    """Keeps these; returns how much they take."""
    store = entry_store.executables()
    assert store is not None
    for name, content in enumerate(contents):
        store.write(str(name), content)
        store.write(f"{entry_store.RECORD}{name}", b"which tells how to load it")
    return sum(entry.size for entry in store.entries())


def test_it_shows_the_folder_what_is_in_it_and_the_limit(folder, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "3M")
    size = _kept(b"one", b"two")
    (folder / "kernels-1.so").write_bytes(bytes(2048))
    shown = _run("cache")
    assert shown.exit_code == 0
    assert shown.output.splitlines() == [
        f"folder       {folder}",
        f"executables  2, {size} bytes; at most 3 MiB",
        "libraries    1, 2 KiB",
    ]


def test_a_folder_that_is_not_there_is_empty_and_stays_away(folder):
    assert "executables  0, 0 bytes" in _run("cache").output
    assert _run("cache", "clear").output == "removed 0 executables and 0 libraries, 0 bytes\n"
    assert not folder.exists()


def test_clearing_removes_everything_but_what_others_put_there(folder):
    _kept(b"one", b"two")
    (folder / "kernels-1.so").write_bytes(b"")
    (folder / "notes.txt").write_text("of the user")
    assert "removed 2 executables and 1 libraries" in _run("cache", "clear").output
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert left == [folder / "notes.txt"]


def test_what_is_switched_off_or_not_used_says_so(folder, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "0")
    assert "nothing is kept" in _run("cache").output
    folder.mkdir()
    os.chmod(folder, 0o777)
    assert "could be written by others: make it the user's alone" in _run("cache").output


def test_a_wrong_size_is_told_without_a_traceback(folder, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "much")
    for arguments in (["cache"], ["cache", "clear"]):
        told = _run(*arguments)
        assert told.exit_code == 1
        assert told.output == (
            "Error: RUNNEL_CACHE_SIZE=much is not a size, such as 500M, 2G or 0 for none\n"
        )


def test_what_cannot_be_removed_is_told_without_a_traceback(folder, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError("read-only")

    _kept(b"one")
    monkeypatch.setattr(Path, "unlink", refuse)
    told = _run("cache", "clear")
    assert told.exit_code == 1
    assert told.output == "Error: not everything could be removed: read-only\n"


def test_it_runs_as_a_module_and_without_jax(folder):
    program = (
        "import runpy, sys; sys.argv = ['runnel', 'cache']\n"
        "try:\n    runpy.run_module('runnel', run_name='__main__')\n"
        "finally:\n    assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"folder       {folder}" in done.stdout


def test_an_installation_has_the_command():
    project = Path(__file__).parent.parent / "pyproject.toml"
    assert 'runnel = "runnel.command_line:main"' in project.read_text()
    for found in metadata.entry_points(group="console_scripts", name="runnel"):
        assert found.load() is main


# Checkpoints ------------------------------------------------------------------------------------


def test_it_shows_what_is_in_a_checkpoint(tmp_path):
    with BundleWriter(str(tmp_path / "m-1")) as writer:
        writer.add("weights", np.arange(6, dtype=np.float32).reshape(2, 3), dtypes.float32)
        writer.add("n", np.int64(5), dtypes.int64)
    update_checkpoint_state(tmp_path, str(tmp_path / "m-1"))
    for given in (str(tmp_path), str(tmp_path / "m-1"), str(tmp_path / "m-1.index")):
        result = _run("inspect", given, "--verify", "--tensor", "n")
        assert result.exit_code == 0, result.output
        lines = result.output.splitlines()
        assert "2 tensors, 7 elements, 32 bytes" in lines[0]
        assert lines[1].split() == ["n", "int64", "[]"]
        assert lines[2].split() == ["weights", "float32", "[2,", "3]"]
        assert "n =\n5" in result.output and "all 2 tensors" in result.output


def test_a_damaged_or_missing_checkpoint_is_told(tmp_path):
    result = _run("inspect", str(tmp_path / "none"))
    assert result.exit_code == 1 and "There is no checkpoint" in result.output
    with BundleWriter(str(tmp_path / "m")) as writer:
        writer.add("v", np.arange(6.0), dtypes.float64)
    [data] = tmp_path.glob("*.data-*")
    data.write_bytes(b"\x01" + data.read_bytes()[1:])
    assert _run("inspect", str(tmp_path / "m")).exit_code == 0
    result = _run("inspect", str(tmp_path / "m"), "--verify")
    assert result.exit_code == 1 and "checksum" in result.output
    assert _run("inspect", str(tmp_path)).exit_code == 1


SCRIPT = """
import sys
import numpy as np
import runnel as tf

x = tf.placeholder(tf.float32, [None, 3], name="x")
w = tf.get_variable("w", [3, 2])
train = tf.assign_sub(w, tf.matmul(x, x @ w, transpose_a=True) * 0.01, name="train")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(int(sys.argv[1])):
        sess.run(train, {x: np.ones((4, 3))})
print("done", sys.argv[1:], __name__)
if "--fail" in sys.argv:
    sys.exit(3)
"""


def test_a_program_is_profiled(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    found = _run("profile", "--timeline", str(tmp_path / "traces"), str(script), "20", "--more")
    assert found.exit_code == 0
    assert "done ['20', '--more'] __main__" in found.output
    rows = [line.split() for line in found.output.splitlines()]
    [row] = [row for row in rows if row[-1:] == ["train:0"] and row[0] == "20"]
    assert row[1] != "0"
    assert "A step of 1 units, run 20 times" in found.output
    assert "variables: 24 bytes" in found.output
    traces = [json.loads(path.read_text()) for path in (tmp_path / "traces").iterdir()]
    names = {e["args"]["name"] for trace in traces for e in trace["traceEvents"] if e["ph"] == "X"}
    assert "train" in names


def test_a_program_that_fails_is_profiled_all_the_same(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    found = _run("profile", str(script), "2", "--fail")
    assert found.exit_code == 3 and "run 2 times" in found.output
    script.write_text(SCRIPT + "raise ZeroDivisionError")
    with tf.Graph().as_default():
        found = _run("profile", str(script), "2")
    assert isinstance(found.exception, ZeroDivisionError) and "run 2 times" in found.output


UNCHANGED = """
import sys
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.layers.python.layers import initializers
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import ops
import runnel

assert tf is runnel and tf.__spec__.name == "runnel"
assert slim is runnel.contrib.slim and ops is runnel.python.framework.ops
assert isinstance(tf.get_default_graph().as_graph_def(), graph_pb2.GraphDef)
with tf.Session() as sess:
    print(sess.run(tf.constant(2) * 21), sys.argv, __name__)
try:
    import tensorflow.lite
except ModuleNotFoundError as error:
    print(error)
sys.exit(5)
"""


@pytest.mark.parametrize("is_module", [False, True])
def test_a_program_of_tensorflow_runs_as_it_stands(tmp_path, is_module):
    (tmp_path / "program.py").write_text(UNCHANGED)
    what = ["-m", "program"] if is_module else ["program.py"]
    found = subprocess.run(
        [sys.executable, "-m", "runnel", "run", *what, "--steps", "3"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    assert found.returncode == 5, found.stderr
    first, second = found.stdout.splitlines()
    assert first.startswith("42 [") and first.endswith("program.py', '--steps', '3'] __main__")
    assert "nothing for the module tensorflow.lite" in second


def test_tensorflows_name_is_runnels_only_while_a_program_runs(tmp_path):
    (tmp_path / "program.py").write_text("import tensorflow.nn\n")
    before = set(sys.modules), sys.meta_path[-1]
    assert _run("run", str(tmp_path / "program.py")).exit_code == 0
    assert not any(name.startswith("tensorflow") for name in set(sys.modules) - before[0])
    missing = _run("run", str(tmp_path / "other.py"))
    assert missing.exit_code == 2 and "-m runs a module" in missing.output


def test_a_command_loads_what_it_needs_itself():
    program = (
        "import sys\n"
        "from runnel.command_line import main\n"
        "main(['up', '--help'], standalone_mode=False)\n"
        "loaded = {'runnel.train', 'runnel.runtime.session', 'runnel.launch_commands'}\n"
        "print(*sorted(loaded & set(sys.modules)))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.splitlines()[-1] == "runnel.launch_commands"


def test_help_names_every_command():
    shown = _run("--help").output
    for name in (
        "board",
        "cache",
        "cluster",
        "inspect",
        "kubernetes",
        "profile",
        "run",
        "server",
        "up",
    ):
        assert f"\n  {name} " in shown
    assert _run("upp").exit_code == 2
