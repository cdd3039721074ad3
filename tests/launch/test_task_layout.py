"""Which tasks a job has, and what each is told."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from runnel.launch.reserved_ports import ReservedPorts
from runnel.launch.task_layout import (
    LaunchedTask,
    TaskLayout,
    shared_threads,
    tf_config,
    told_arguments,
)


def test_servers_come_first_and_an_evaluator_is_not_in_the_cluster():
    layout = TaskLayout(ps=1, workers=2, chief=True, evaluator=True)
    names = [str(task) for task in layout.tasks()]
    assert names == ["ps:0", "chief:0", "worker:0", "worker:1", "evaluator:0"]
    cluster = layout.cluster(["a:1", "b:2", "c:3", "d:4"])
    assert cluster == {"ps": ["a:1"], "chief": ["b:2"], "worker": ["c:3", "d:4"]}
    config = json.loads(tf_config(cluster, LaunchedTask("evaluator", 0)))
    assert config == {"cluster": cluster, "task": {"type": "evaluator", "index": 0}}


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"ps": -1}, {"workers": -1, "chief": True}])
def test_a_job_without_workers_is_refused(wrong):
    with pytest.raises(ValueError):
        TaskLayout(**wrong)


def test_arguments_that_name_the_cluster_are_filled_in_and_other_braces_left():
    cluster = {"ps": ["a:1"], "worker": ["b:2", "c:3"]}
    given = ["--job={job}", "{task}", "--w={worker_hosts}", "--p={ps_hosts}", '{"x": {}}', "{y}"]
    found = told_arguments(given, cluster, LaunchedTask("worker", 1))
    assert found == ["--job=worker", "1", "--w=b:2,c:3", "--p=a:1", '{"x": {}}', "{y}"]
    assert told_arguments(["{chief_hosts}"], cluster, LaunchedTask("ps", 0)) == [""]


def test_cores_are_shared_and_nobody_goes_without():
    assert [shared_threads(cores, 6) for cores in (1, 6, 64)] == [1, 1, 10]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ports are given back at once")
def test_a_port_is_kept_for_a_task_that_can_be_started_again_and_refuses_while_it_is_not_there():
    listen = (
        "import socket, sys\n"
        "socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"  # as a task does
    )
    with ReservedPorts(3) as ports:
        assert len(set(ports.numbers)) == 3
        number = ports.numbers[0]
        for _ in range(2):
            subprocess.run([sys.executable, "-c", listen, str(number)], check=True)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", number), 5)
        with socket.socket() as other, pytest.raises(OSError):
            other.bind(("127.0.0.1", number))  # somebody who does not know of it
