"""Steps over parameter servers and workers: each task a process of its own, on loopback.

The process of the contender is worker 0. The others are started with it and end with it; workers
run as many steps as worker 0 does, at the same time.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads.shared_copy import copy_seconds

ROWS = 32
WIDTH = 64
MEGA = 1 << 20
BATCH = 100
MAPPED_IDS = 1_000


class OtherWorkers:
    """Processes that run as many steps as they are told, by a line, and then say something."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def begin(self, iterations: int) -> None:
        """Has each run as many steps."""
        for process in self._processes:
            assert process.stdin is not None
            try:
                process.stdin.write(f"{iterations}\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise _gone(process) from None

    def await_end(self) -> list[str]:
        """Waits for them; what each has said. An error when one has ended instead."""
        said = []
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise _gone(process)
            said.append(line)
        return said


def _gone(process: subprocess.Popen[str]) -> RuntimeError:
    return RuntimeError(f"a worker has ended while it was measured: exit status {process.wait()}")


class Cluster(OtherWorkers):
    """The other tasks of a cluster, as processes."""

    def __init__(
        self,
        frontend: str,
        servers: int,
        workers: int,
        program: dict[str, Any],
        module: str = __name__,
    ) -> None:
        """`module` is run for each of them."""
        self._module = module
        addresses = free_addresses(servers + workers)
        self.spec = {"ps": addresses[:servers], "worker": addresses[servers:]}
        processes = []
        for job, count in (("ps", servers), ("worker", workers)):
            for index in range(1 if job == "worker" else 0, count):
                task = {"job": job, "index": index, "frontend": frontend, "program": program}
                processes.append(self._start(task))
        self._servers = processes[:servers]
        super().__init__(processes[servers:])

    def _start(self, task: dict[str, Any]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", self._module, json.dumps({**task, "spec": self.spec})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def null_step(
    frontend: str,
    kind: str,
    servers: int = 1,
    workers: int = 1,
    megabytes: float = 0.0,
    transport: str = "",
) -> Workload:
    """One step that moves values between tasks, or trains a network or a table in mapped files.

    `transport` is "tcp" or "tls" where runnel shall do without what one machine allows.
    """
    program = {"kind": kind, "servers": servers, "megabytes": megabytes}
    folder = None
    if kind == "mapped":
        folder = tempfile.TemporaryDirectory(prefix="tables-")
        program["folder"] = folder.name
    if transport:
        os.environ["RUNNEL_TRANSPORT"] = "tcp"
    if transport == "tls":
        os.environ.update(_certificate())
    cluster = Cluster(frontend, servers, workers, program)
    tf = load_frontend(frontend)
    server = tf.train.Server(tf.train.ClusterSpec(cluster.spec), "worker", 0)
    step = _session_step(tf, server, 0, program)
    right = _is_right(step(), kind)
    if folder is not None:
        folder.cleanup()  # its files have no names

    def run(iterations: int) -> None:
        cluster.begin(iterations)
        for _ in range(iterations):
            step()
        cluster.await_end()

    def facts() -> dict[str, Any]:
        found: dict[str, Any] = {"right": right}
        if kind == "dense":
            found["copy_seconds"] = copy_seconds(int(megabytes * MEGA))
        return found

    return Workload(run, facts=facts)


def _certificate() -> dict[str, str]:
    """A certificate for this machine, as runnel's variables name it."""
    folder = tempfile.mkdtemp(prefix="certificate-")
    atexit.register(shutil.rmtree, folder, True)
    key, certificate = os.path.join(folder, "task.key"), os.path.join(folder, "task.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return {
        "RUNNEL_TLS_CERT": certificate,
        "RUNNEL_TLS_KEY": key,
        "RUNNEL_TLS_CA": certificate,
        "RUNNEL_CLUSTER_TOKEN": "benchmark",
    }


def _is_right(found: Any, kind: str) -> bool:
    if kind in ("add", "mlp", "mapped"):
        return True
    return all(np.all(np.asarray(value) == 1.0) for value in found)


def _session_step(tf: Any, server: Any, index: int, program: dict[str, Any]) -> Any:
    with tf.Graph().as_default():
        init, fetches, feeds = _described(tf, index, **program)
        session = tf.Session(server.target)
        session.run(init)
        step = session.make_callable(fetches, list(feeds))
        fed = list(feeds.values())
    return lambda: step(*fed)


def _described(
    tf: Any, index: int, kind: str, servers: int, megabytes: float, folder: str = ""
) -> tuple[Any, Any, dict[Any, Any]]:
    """What this worker initialises, what a step fetches, and what it is fed.

    Worker 0 initialises what is shared, before the others begin.
    """
    if kind == "mlp":
        return _perceptron(tf, index)
    if kind == "mapped":
        return _mapped_table(tf, index, servers, megabytes, folder)
    fetches, feeds, initialised = [], {}, []
    rng = np.random.default_rng(index)
    for number in range(servers):
        with tf.device(f"/job:ps/task:{number}"):
            if kind == "scalar":
                shape: list[int] = []
            elif kind == "rows":
                shape = [int(megabytes * MEGA / 4 / WIDTH / servers), WIDTH]
            else:
                shape = [int(megabytes * MEGA / 4 / servers)]
            variable = tf.get_variable(
                f"shared_{number}", initializer=tf.ones(shape), use_resource=False
            )
            if index == 0:
                initialised.append(variable)
            if kind == "rows":
                rows = tf.placeholder(tf.int32, [ROWS])
                feeds[rows] = rng.integers(0, shape[0], ROWS).astype(np.int32)
                found = tf.gather(variable, rows)
        with tf.device(f"/job:worker/task:{index}"):
            if kind == "rows":
                fetches.append(tf.identity(found))
            elif kind == "add":
                delta = tf.get_variable(
                    f"delta_{index}_{number}", initializer=tf.fill(shape, 1e-3), use_resource=False
                )
                initialised.append(delta)
                sent = tf.identity(delta)  # a constant would not have to be sent
            else:
                fetches.append(tf.identity(variable))
        if kind == "add":
            with tf.device(f"/job:ps/task:{number}"):
                fetches.append(tf.assign_add(variable, sent).op)
    return tf.group(*[variable.initializer for variable in initialised]), fetches, feeds


def _perceptron(tf: Any, index: int) -> tuple[Any, Any, dict[Any, Any]]:
    """A perceptron, its weights on the parameter server, trained by gradient descent."""
    rng = np.random.default_rng(index)
    weights = []
    with tf.device("/job:ps/task:0"):
        for number, (inputs, outputs) in enumerate([(784, 128), (128, 64), (64, 10)]):
            start = tf.random_normal([inputs, outputs], stddev=0.1, seed=number)
            weights.append(tf.get_variable(f"w{number}", initializer=start, use_resource=False))
            zeros = tf.zeros([outputs])
            weights.append(tf.get_variable(f"b{number}", initializer=zeros, use_resource=False))
    with tf.device(f"/job:worker/task:{index}"):
        x = tf.placeholder(tf.float32, [BATCH, 784])
        labels = tf.placeholder(tf.int32, [BATCH])
        hidden = tf.nn.relu(tf.matmul(x, weights[0]) + weights[1])
        hidden = tf.nn.relu(tf.matmul(hidden, weights[2]) + weights[3])
        logits = tf.matmul(hidden, weights[4]) + weights[5]
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    feeds = {
        x: rng.normal(size=(BATCH, 784)).astype(np.float32),
        labels: rng.integers(0, 10, BATCH).astype(np.int32),
    }
    init = tf.group(*[weight.initializer for weight in weights] if index == 0 else [])
    return init, [train, loss], feeds


def _mapped_table(
    tf: Any, index: int, servers: int, megabytes: float, folder: str
) -> tuple[Any, Any, dict[Any, Any]]:
    """A table in memory-mapped files on all servers, some rows of which each step trains."""
    rows = int(megabytes * MEGA / 4 / WIDTH)
    place = tf.train.replica_device_setter(servers, worker_device=f"/job:worker/task:{index}")
    with tf.device(place):
        ids = tf.placeholder(tf.int64, [MAPPED_IDS])
        with tf.mapped_variables(folder):
            table = tf.get_variable(
                "table",
                [rows, WIDTH],
                initializer=tf.zeros_initializer(),
                partitioner=tf.fixed_size_partitioner(servers),
            )
        found = tf.nn.embedding_lookup(table, ids, "div")
        loss = tf.reduce_mean(tf.square(found - 1))
        # Its slots begin as zeros too, which are not written: no writing goes on beside the steps.
        train = tf.train.MomentumOptimizer(1.0, 0.5).minimize(loss)
        init = tf.global_variables_initializer() if index == 0 else tf.no_op()
    wanted = np.random.default_rng(index).integers(0, rows, MAPPED_IDS)
    return init, [train, loss], {ids: wanted}


def free_addresses(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{sock.getsockname()[1]}" for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def end_with_parent() -> None:
    """Ends this process when the one that started it is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """A task of a cluster."""
    task = json.loads(sys.argv[1])
    end_with_parent()
    if task["job"] == "ps":
        tf = load_frontend(task["frontend"])
        tf.train.Server(tf.train.ClusterSpec(task["spec"]), "ps", task["index"]).join()
        return
    tf, index = load_frontend(task["frontend"]), task["index"]
    server = tf.train.Server(tf.train.ClusterSpec(task["spec"]), "worker", index)
    step: Any = None
    for line in sys.stdin:
        if step is None:
            step = _session_step(tf, server, index, task["program"])
        for _ in range(int(line)):
            step()
        print("done", flush=True)


if __name__ == "__main__":
    main()
