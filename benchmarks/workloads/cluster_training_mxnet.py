"""The training of `cluster_training` by MXNet's distributed key-value store.

Where `RUNNEL_MXNET` names an interpreter with MXNet 1.9.1, that runs its scheduler, its server and
its workers: `mxnet_task`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads import mxnet_task
from benchmarks.workloads.cluster import OtherWorkers, free_addresses
from benchmarks.workloads.cluster_training import (
    RATE,
    WORKERS,
    batches,
    initial_values,
    trained_alike,
)

VARIABLE = "RUNNEL_MXNET"


def interpreter() -> str | None:
    """The Python that has MXNet, if the environment names one."""
    return os.environ.get(VARIABLE) or None


class Tasks(OtherWorkers):
    """A scheduler, a server and the workers, as processes."""

    def __init__(self, model: str, synchronous: bool, file: str) -> None:
        host, port = free_addresses(1)[0].split(":")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "DMLC_PS_ROOT_URI": host,
            "DMLC_PS_ROOT_PORT": port,
            "DMLC_NODE_HOST": host,
            "DMLC_NUM_SERVER": "1",
            "DMLC_NUM_WORKER": str(WORKERS),
            # Tasks share the cores: threads of BLAS would wait for one another.
            "OMP_NUM_THREADS": "1",
        }
        self._servers = [self._start("scheduler"), self._start("server")]
        program = (model, str(synchronous), file)
        super().__init__([self._start("worker", *program, str(i)) for i in range(WORKERS)])

    def _start(self, role: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(interpreter()), "-W", "ignore", mxnet_task.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**self._environment, "DMLC_ROLE": role},
            text=True,
        )

    def close(self) -> None:
        """Ends them all, and waits until they have."""
        for process in (*self._processes, *self._servers):
            process.communicate()


def training(model: str, synchronous: bool) -> Workload:
    """A step of each worker."""
    return _training(model, synchronous)[0]


def final_loss(model: str, synchronous: bool) -> float:
    """The loss that the steps of `trained_alike` come to."""
    workload, tasks = _training(model, synchronous)
    tasks.close()
    return float(workload.facts()["losses"][0])


def _training(model: str, synchronous: bool) -> tuple[Workload, Tasks]:
    losses: list[float] = []

    def run(iterations: int) -> None:
        tasks.begin(iterations)
        losses.append(float(tasks.await_end()[0]))

    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "given.npz"))
        _write(file, model)
        tasks = Tasks(model, synchronous, file)
        facts = trained_alike(run, losses)
    return Workload(run, facts=facts), tasks


def _write(file: str, model: str) -> None:
    arrays = {f"p{number}": value for number, value in enumerate(initial_values(model))}
    for index in range(WORKERS):
        inputs, wanted = zip(*batches(model, index), strict=True)
        arrays[f"inputs_{index}"] = np.stack(inputs)
        # MXNet has labels of the type of the values that they choose from.
        arrays[f"wanted_{index}"] = np.stack(wanted).astype(np.float32)
    np.savez(file, rate=RATE, **arrays)
