"""What ``srun`` tells its tasks, as a cluster; and ``runnel up --slurm`` as such a task."""

from __future__ import annotations

import re
import signal
import socket
import string
import sys
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.command_line import main
from runnel.launch import slurm_job
from runnel.launch.slurm_environment import (
    SlurmError,
    SlurmStep,
    expanded_counts,
    expanded_hosts,
)
from runnel.launch.task_layout import LaunchedTask, TaskLayout
from tests.distributed.clusters import cluster_of

# Hosts ------------------------------------------------------------------------------------------

NAMES = st.text(string.ascii_lowercase + "-._", min_size=1, max_size=6)


@st.composite
def _ranges(draw) -> tuple[str, list[str]]:
    """Some ranges as Slurm writes them, and the numbers that they stand for."""
    width = draw(st.integers(1, 4))
    written, meant = [], []
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, 10**width - 1))
        count = draw(st.integers(1, 5))
        numbers = [str(first + i).rjust(width, "0") for i in range(count)]
        written.append(numbers[0] if count == 1 else f"{numbers[0]}-{numbers[-1]}")
        meant += numbers
    return ",".join(written), meant


@st.composite
def _item(draw) -> tuple[str, list[str]]:
    text = draw(NAMES)
    meant = [text]
    for _ in range(draw(st.integers(0, 2))):
        ranges, numbers = draw(_ranges())
        after = draw(st.one_of(st.just(""), NAMES))
        text += f"[{ranges}]{after}"
        meant = [f"{before}{number}{after}" for before in meant for number in numbers]
    return text, meant


@settings(deadline=None)
@given(st.lists(_item(), min_size=1, max_size=4))
def test_a_list_of_hosts_means_its_names_in_order(items):
    text = ",".join(item for item, _ in items)
    assert expanded_hosts(text) == [name for _, names in items for name in names]


@pytest.mark.parametrize(
    ("text", "names"),
    [  # as `scontrol show hostnames` has them
        ("node1", ["node1"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("node[08-10]", ["node08", "node09", "node10"]),
        ("node[9-11]", ["node9", "node10", "node11"]),
        ("a[1,3-4],b2", ["a1", "a3", "a4", "b2"]),
        ("r[0-1]n[1-2]-ib", ["r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"]),
    ],
)
def test_known_lists_of_hosts(text, names):
    assert expanded_hosts(text) == names


@pytest.mark.parametrize("wrong", ["", "a,,b", "a[1", "a]1[", "a[[1]]", "a[]", "a[x-y]", "a[3-1]"])
def test_what_is_no_list_of_hosts_is_told(wrong):
    with pytest.raises(SlurmError, match="no list of hosts"):
        expanded_hosts(wrong)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=4))
def test_counts_of_tasks_mean_one_number_a_node(pairs):
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in pairs)
    assert expanded_counts(text) == [count for count, times in pairs for _ in range(times)]


# Steps ------------------------------------------------------------------------------------------


def _environment(nodes="n[0-2]", counts="2(x2),1", number=0, **more) -> dict[str, str]:
    return {
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_TASKS_PER_NODE": counts,
        "SLURM_STEP_NUM_TASKS": str(sum(expanded_counts(counts))),
        "SLURM_PROCID": str(number),
        "SLURM_JOB_ID": "77",
        **{f"SLURM_{name}": value for name, value in more.items()},
    }


@pytest.mark.parametrize(
    ("distribution", "where"),
    [
        ({}, ["n0", "n0", "n1", "n1", "n2"]),
        ({"DISTRIBUTION": "block:cyclic"}, ["n0", "n0", "n1", "n1", "n2"]),
        ({"DISTRIBUTION": "cyclic"}, ["n0", "n1", "n2", "n0", "n1"]),
        ({"DISTRIBUTION": "plane=2", "DIST_PLANESIZE": "2"}, ["n0", "n0", "n1", "n1", "n2"]),
    ],
)
def test_each_task_is_on_the_node_where_slurm_has_put_it(distribution, where):
    assert list(SlurmStep.from_environment(_environment(**distribution)).hosts) == where


def test_servers_come_first_and_all_tasks_agree():
    layout = TaskLayout(ps=2, workers=3)
    found = [
        SlurmStep.from_environment(_environment(number=i, STEP_RESV_PORTS="12000-12001")).cluster(
            layout
        )
        for i in range(5)
    ]
    assert [task for _, task in found] == layout.tasks()
    assert all(cluster == found[0][0] for cluster, _ in found)
    assert found[0][0] == {
        "ps": ["n0:12000", "n0:12001"],
        "worker": ["n1:12000", "n1:12001", "n2:12000"],
    }


def test_an_evaluator_is_the_last_task_and_one_machine_needs_no_network():
    step = SlurmStep.from_environment(_environment("big", "3", 2))
    cluster, task = step.cluster(TaskLayout(ps=1, workers=1, evaluator=True))
    assert task == LaunchedTask("evaluator", 0)
    addresses = cluster["ps"] + cluster["worker"]
    assert all(address.startswith("localhost:") for address in addresses)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.sampled_from(["block", "cyclic", "plane"]),
    st.integers(1, 3),
    st.integers(0, 10**7),
    st.integers(0, 50),
)
def test_no_two_tasks_share_an_address_and_every_node_has_its_tasks(
    counts, kind, plane, job, number
):
    step = SlurmStep.from_environment(
        _environment(
            f"n[0-{len(counts) - 1}]",
            ",".join(map(str, counts)),
            DISTRIBUTION=kind,
            DIST_PLANESIZE=str(plane),
            JOB_ID=str(job),
            STEP_ID=str(number),
        )
    )
    assert Counter(step.hosts) == {f"n{i}": count for i, count in enumerate(counts)}
    assert len({*zip(step.hosts, step.ports)}) == sum(counts)
    assert all(1024 < port < 32768 for port in step.ports)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURM_PROCID": None}, "srun runnel up --slurm"),
        ({"SLURM_STEP_NUM_TASKS": "9"}, "names 9 tasks"),
        ({"SLURM_STEP_TASKS_PER_NODE": "5"}, "3 nodes, but tasks of 1"),
        ({"SLURM_NODEID": "2"}, "srun --distribution=block"),
        ({"SLURM_STEP_RESV_PORTS": "12000"}, "srun --resv-ports"),
    ],
)
def test_an_environment_that_does_not_fit_is_told(change, message):
    environment = _environment() | change
    environment = {name: value for name, value in environment.items() if value is not None}
    with pytest.raises(SlurmError, match=re.escape(message)):
        SlurmStep.from_environment(environment)


def test_a_job_of_another_size_than_the_step_is_told():
    with pytest.raises(SlurmError, match="srun --ntasks=2"):
        SlurmStep.from_environment(_environment()).cluster(TaskLayout(ps=1, workers=1))


def test_outside_of_srun_it_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    program = tmp_path / "program.py"
    program.touch()
    result = CliRunner().invoke(main, ["up", "--slurm", str(program)])
    assert result.exit_code == 2 and "srun runnel up --slurm" in result.output


# Tasks ------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, sys
import runnel as tf
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), task["type"], task["index"])
if task["type"] == "ps":
    server.join()
with tf.device("/job:ps"):
    answer = tf.constant(40) + 2
with tf.Session(server.target) as sess:
    print("answer", sess.run(answer), flush=True)
if "--stay" in sys.argv:
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("stays", flush=True)
    signal.pause()
"""


@pytest.fixture
def step(up, tmp_path, unused_job):
    """The two tasks of a step on one machine, as srun would start them."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def start(*arguments: str):
        return [
            up(
                *("--slurm", "--ps", 1, "--grace", 3, program, *arguments),
                **_environment("here", "2", number, **unused_job),
            )
            for number in range(2)
        ]

    return start


@pytest.fixture
def unused_job() -> dict[str, str]:
    """Ports that nobody uses now, as if they were reserved."""
    from tests.distributed.clusters import free_addresses

    numbers = [address.rpartition(":")[2] for address in free_addresses(2)]
    return {"STEP_RESV_PORTS": ",".join(numbers)}


@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="the tasks end as on Linux")
def test_a_parameter_server_ends_when_the_workers_have(step):
    ps, worker = step()
    assert worker.ended() == 0 and "worker:0 | answer 42" in worker.text()
    assert ps.ended() == 0 and "the workers are done" in ps.text()


def test_a_task_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(slurm_job, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not slurm_job._was_used(f"localhost:{silent.getsockname()[1]}")


def test_a_worker_that_came_and_went_has_left_its_traces():
    spec = cluster_of(ps=1, worker=1)
    assert not slurm_job._was_used(spec["ps"][0])
    ps = tf.train.Server(spec, "ps", 0)
    try:
        assert not slurm_job._was_used(spec["ps"][0])
        worker = tf.train.Server(spec, "worker", 0)
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(worker.target) as job:
            job.run(tf.Variable(1.0).initializer)
        worker.stop()
        assert slurm_job._was_used(spec["ps"][0])
    finally:
        ps.stop()


@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="the tasks end as on Linux")
def test_a_signal_to_all_tasks_lets_the_workers_end_first(step):
    ps, worker = step("--stay")
    worker.wait_for("stays")
    ps.process.send_signal(signal.SIGTERM)
    ps.wait_for("ps:0 ends when no worker is left")
    assert worker.process.poll() is None
    worker.process.send_signal(signal.SIGTERM)
    assert worker.ended() == 143
    assert ps.ended() == 0
