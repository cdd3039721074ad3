"""``runnel up``: tasks as processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from runnel.command_line import main
from tests.launch.conftest import ROOT, is_alive, wait_until

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

WHO = """
import json, os, sys
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
name = f"{task['type']}:{task['index']}"
print(f"pid {os.getpid()}", flush=True)
"""

WAIT = "import signal\nsignal.pause()\n"


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(WHO + text)
        return str(path)

    return write


def _pids(job, count: int) -> list[int]:
    return [int(match[1]) for match in job.wait_for(r"pid (\d+)", count)]


def test_every_task_runs_the_program_knows_who_it_is_and_is_named_in_the_log(up, script, tmp_path):
    text = (
        f"""
go = {str(tmp_path / "go")!r}
"""
        + """
print(name, sys.argv[1:], sorted(config["cluster"]), os.environ["OMP_NUM_THREADS"], flush=True)
print("to stderr", file=sys.stderr)
if task["type"] == "ps":
    import signal
    signal.pause()
import threading
while not os.path.exists(go):
    threading.Event().wait(0.02)
"""
    )
    job = up("--ps", 1, "--workers", 2, "--threads", 3, script(text), "--job={job}", "--x", "{")
    job.wait_for("to stderr", 3)
    (tmp_path / "go").touch()
    assert job.ended() == 0
    for name in ("ps:0", "worker:0", "worker:1"):
        who = name.partition(":")[0]
        line = f"{name} ['--job={who}', '--x', '{{'] ['ps', 'worker'] 3"
        assert any(seen.split(" | ", 1) == [name.ljust(8), line] for seen in job.lines)
        assert f"{name.ljust(8)} | to stderr" in job.lines


def test_the_status_of_the_job_is_that_of_the_worker_that_failed_and_all_are_ended(
    up, script, tmp_path
):
    go = tmp_path / "go"
    os.mkfifo(go)
    text = f"""
if name == "worker:1":
    open({str(go)!r}).read()
    sys.exit(7)
"""
    job = up("--ps", 1, "--workers", 2, script(text + WAIT))
    pids = _pids(job, 3)
    go.write_text("now")
    assert job.ended() == 7
    assert "worker:1 ended with status 7" in job.text()
    assert wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_tasks_in_order_with_what_they_have_started(up, script, number):
    text = """
import signal, subprocess
child = subprocess.Popen(["sleep", "600"])
try:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"pid {child.pid}", flush=True)
    signal.pause()
finally:
    print("saved", flush=True)
"""
    job = up("--ps", 1, "--workers", 2, script(text))
    pids = _pids(job, 6)
    job.process.send_signal(number)
    assert job.ended() == 128 + number
    saved = [line.partition(" ")[0] for line in job.lines if line.endswith("| saved")]
    assert (sorted(saved[:2]), saved[2:]) == (["worker:0", "worker:1"], ["ps:0"]), job.text()
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_who_does_not_end_in_time_is_killed(up, script):
    text = """
import signal
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("deaf", flush=True)
while True:
    signal.pause()
"""
    job = up("--workers", 1, "--grace", 0.3, script(text))
    job.wait_for("deaf")
    job.process.send_signal(signal.SIGTERM)
    assert job.ended(30) == 143
    assert "worker:0 did not end in time: it is killed" in job.text()


def test_a_launcher_that_is_killed_takes_its_tasks_with_it(up, script):
    job = up("--ps", 1, "--workers", 1, script(WAIT))
    pids = _pids(job, 2)
    job.process.kill()
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_a_task_that_was_killed_comes_back_at_its_address_and_the_log_says_why(up, script):
    text = (
        """
import socket
host, port = config["cluster"][task["type"]][task["index"]].split(":")
server = socket.create_server((host, int(port)))
print(f"at {port}", flush=True)
"""
        + WAIT
    )
    job = up("--workers", 1, "--restarts", 1, script(text))
    [pid] = _pids(job, 1)
    job.wait_for(r"at (\d+)")
    os.kill(pid, signal.SIGKILL)
    ports = [match[1] for match in job.wait_for(r"at (\d+)", 2)]
    assert ports[0] == ports[1]
    assert "worker:0 was killed by SIGKILL; it is started anew (1 of 1)" in job.text()
    job.process.send_signal(signal.SIGTERM)
    job.ended()


def test_an_output_that_nobody_reads_any_more_ends_the_job(tmp_path, script):
    text = "while True: print('a line', flush=True)\n"
    command = [sys.executable, "-m", "runnel", "up", script(text)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) != 0


def test_plain_servers_need_no_program_and_are_seen_by_the_folder_of_the_job(up, script, tmp_path):
    text = (
        """
import runnel as tf
assert task["type"] == "worker"
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), "worker", 0)
with tf.device("/job:ps"):
    answer = tf.constant(40) + 2
with tf.Session(server.target) as sess:
    print("answer", sess.run(answer), flush=True)
"""
        + WAIT
    )
    job = up("--ps", 1, "--servers", script(text))
    job.wait_for("answer 42")
    folder = job.wait_for(r"--job (\S+)")[0][1]
    assert folder.startswith(str(tmp_path))
    environment = {"RUNNEL_CLUSTER_TOKEN": "", "RUNNEL_CLUSTER_TOKEN_FILE": ""}
    shown = CliRunner(env=environment).invoke(
        main, ["cluster", "status", "--json", "--job", folder]
    )
    tasks = json.loads(shown.output)
    assert [task["task"].rpartition("/")[0] for task in tasks] == [
        "/job:ps/replica:0",
        "/job:worker/replica:0",
    ]
    job.process.send_signal(signal.SIGTERM)
    assert job.ended() == 143
    assert not os.path.exists(folder)


def test_a_table_below_the_log_does_not_change_the_log(up, script):
    long = "x" * 300
    job = up("--watch", script(f"print({long!r}, flush=True)"))
    assert job.ended() == 0
    assert f"worker:0 | {long}" in job.lines


def test_a_job_without_workers_is_refused(tmp_path, script):
    result = CliRunner().invoke(main, ["up", "--workers", "0", script("")])
    assert result.exit_code == 2 and "needs a worker" in result.output


@pytest.mark.parametrize("coordination", ["sync", "backup"])
def test_an_example_trains_on_a_parameter_server_and_two_workers(up, coordination):
    example = ROOT / "examples" / "distributed_digits.py"
    options = ["--coordination", coordination, "--steps", 150, "--learning-rate", 0.01]
    job = up("--ps", 1, "--workers", 2, example, *options)
    assert job.ended(100) == 0, job.text()
    job.wait_for(r"^worker:0 +\| .*step 150/150: loss")
    job.wait_for(r"^worker:0 +\| .*accuracy: 0\.9")


def test_a_program_of_tensorflow_runs_as_it_stands(up, tmp_path):
    (tmp_path / "beside.py").write_text("from tensorflow.contrib.training import HParams\n")
    program = tmp_path / "program.py"
    program.write_text(
        """
import json, os, sys
import beside
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.train.Server(config["cluster"], task["type"], task["index"])
if task["type"] == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    doubled = 2 * tf.constant(int(sys.argv[1]))
with tf.Session(server.target) as sess:
    print("found", sess.run(doubled), beside.HParams(a=3).a, flush=True)
"""
    )
    job = up("--ps", 1, "--workers", 1, "--as-tensorflow", program, 21)
    assert job.ended(60) == 0, job.text()
    job.wait_for(r"worker:0 +\| found 42 3")
