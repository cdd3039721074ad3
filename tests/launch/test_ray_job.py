"""``runnel up --ray``, on a real Ray of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from runnel.command_line import main
from tests.launch.conftest import ROOT, TRAINING, is_alive, wait_until

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None or sys.platform != "linux", reason="needs Ray, and looks at /proc"
)


@pytest.fixture
def short_folder() -> Iterator[str]:
    """Ray's sockets are in it, and their names may not be long."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield name


@needs_ray
@pytest.mark.timeout(300)
def test_a_job_on_ray_goes_on_when_an_actor_or_a_task_is_killed(up, tmp_path, short_folder):
    program = tmp_path / "program.py"
    program.write_text(TRAINING)
    places = ["--resources", "ps:CPU=0.1", "--resources", "worker:CPU=0.1"]
    job = up(
        *("--ray", "--ps", 1, "--workers", 2, *places),
        *(program, tmp_path / "model", 120, tmp_path / "go_on"),
        RAY_TMPDIR=short_folder,
        RAY_ADDRESS="local",
    )
    job.wait_for("3 tasks on 1 machine of a Ray cluster", seconds=120)
    job.wait_for(r"^worker:1 +\| step \d+", seconds=60)
    [worker] = [int(match[1]) for match in job.wait_for(r"^worker:1 +\| pid (\d+)")]
    actor = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(actor, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(worker))  # a task does not outlive its actor
    job.wait_for(r"^worker:1 +\| pid (\d+)", 2)
    [ps] = [int(match[1]) for match in job.wait_for(r"^ps:0 +\| pid (\d+)")]
    os.kill(ps, signal.SIGKILL)
    (tmp_path / "go_on").touch()
    assert job.ended(120) == 0, job.text()
    text = job.text()
    assert "training goes on from step" in text
    assert "the actor of worker:1 is gone; Ray starts another" in text
    assert "worker:1 was killed by SIGKILL; it is started anew (1 of 3)" in text
    assert "ps:0 was killed by SIGKILL; it is started anew (1 of 3)" in text


DRIVER = """
import sys
import ray
import runnel

ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="ERROR")
status = runnel.launch.ray(
    sys.argv[1],
    sys.argv[2:],
    layout=runnel.launch.TaskLayout(ps=1, workers=2),
    resources={"ps": {"CPU": 0.1}, "worker": {"CPU": 0.1}},
)
assert ray.is_initialized()  # the connection is the driver's
print("driver: status", status)
ray.shutdown()
sys.exit(status)
"""


@needs_ray
@pytest.mark.timeout(300)
def test_a_driver_that_is_connected_to_ray_runs_an_example(tmp_path, short_folder):
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    example = ROOT / "examples" / "distributed_digits.py"
    options = ["--coordination", "bounded", "--steps", "60", "--learning-rate", "0.01"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, str(driver), str(example), *options],
        env={**os.environ, "PYTHONPATH": path, "RAY_TMPDIR": short_folder},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stdout
    assert "driver: status 0" in ended.stdout
    assert re.search(r"worker:1 +\| .*steps", ended.stdout), ended.stdout


def test_ray_is_not_imported_unless_it_is_asked_for():
    code = (
        "import sys, runnel, runnel.command_line\n"
        "import runnel.launch.local_job, runnel.launch.ray_job\n"
        "runnel.launch.ray\n"
        "assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("wrong", ["worker", "worker:CPU", "worker:CPU=many", ":CPU=1"])
def test_resources_that_cannot_be_read_are_told(wrong, tmp_path):
    program = tmp_path / "program.py"
    program.touch()
    result = CliRunner().invoke(main, ["up", "--ray", "--resources", wrong, str(program)])
    assert result.exit_code == 2 and "JOB:NAME=AMOUNT" in result.output


def test_a_missing_ray_is_told_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    program = tmp_path / "program.py"
    program.touch()
    result = CliRunner().invoke(main, ["up", "--ray", str(program)])
    assert result.exit_code == 1 and "pip install 'runnel[ray]'" in result.output
