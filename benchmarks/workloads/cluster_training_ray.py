"""The training of `cluster_training` with a parameter server by hand: actors of Ray, and NumPy.

A worker calls the server once a step: it hands its gradients over and gets the parameters for its
next batch.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.cluster_training import (
    BATCHES,
    RATE,
    WORKERS,
    batches,
    initial_values,
    trained_alike,
)

Arrays = list[np.ndarray]


class ParameterServer:
    """Holds the parameters, and applies gradients as they come or when all workers' are there."""

    def __init__(self, model: str, synchronous: bool) -> None:
        self._sparse = model == "embedding"
        self._values = initial_values(model)
        self._synchronous = synchronous
        self._waiting: list[tuple[Arrays, np.ndarray | None]] = []
        self._round = asyncio.Condition()

    async def exchange(
        self, gradients: Arrays, ids: np.ndarray | None, next_ids: np.ndarray | None
    ) -> Arrays:
        """Applies gradients (of the rows `ids` of a table) and gives what the next batch needs."""
        if not self._synchronous:
            self._apply(gradients, ids, 1)
        elif gradients:
            async with self._round:
                self._waiting.append((gradients, ids))
                if len(self._waiting) == WORKERS:
                    for given, rows in self._waiting:
                        self._apply(given, rows, WORKERS)
                    self._waiting = []
                    self._round.notify_all()
                else:
                    await self._round.wait()
        if next_ids is None:
            return self._values
        return [self._values[0][next_ids], *self._values[1:]]

    def _apply(self, gradients: Arrays, ids: np.ndarray | None, share: int) -> None:
        for number, gradient in enumerate(gradients):
            if ids is not None and number == 0:
                np.subtract.at(self._values[0], ids, gradient * (RATE / share))
            else:
                self._values[number] = self._values[number] - gradient * (RATE / share)


class Worker:
    """Computes gradients."""

    def __init__(self, server: Any, model: str, index: int) -> None:
        # Actors share the cores: threads of BLAS would wait for one another.
        os.environ["OMP_NUM_THREADS"] = "1"
        self._server = server
        self._sparse = model == "embedding"
        self._data = batches(model, index)
        self._next = 0
        self._values = self._exchange([], None)
        self._losses: list[float] = []

    def _exchange(self, gradients: Arrays, ids: np.ndarray | None) -> Arrays:
        import ray

        wanted = self._data[self._next % BATCHES][0].reshape(-1) if self._sparse else None
        return ray.get(self._server.exchange.remote(gradients, ids, wanted))

    def run(self, steps: int) -> list[float]:
        """Trains for so many steps; the losses of the last step of each run so far."""
        for _ in range(steps):
            inputs, wanted = self._data[self._next % BATCHES]
            self._next += 1
            gradients = _of_embedding if self._sparse else _of_perceptron
            loss, found = gradients(self._values, inputs, wanted)
            self._values = self._exchange(found, inputs.reshape(-1) if self._sparse else None)
        self._losses.append(loss)
        return self._losses


def _of_perceptron(values: Arrays, images: np.ndarray, labels: np.ndarray) -> tuple[float, Arrays]:
    inputs = [images]
    for layer in range(0, len(values), 2):
        outputs = inputs[-1] @ values[layer] + values[layer + 1]
        inputs.append(np.maximum(outputs, 0) if layer < len(values) - 2 else outputs)
    shifted = inputs[-1] - inputs[-1].max(1, keepdims=True)
    chances = np.exp(shifted)
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(chances[rows, labels]).mean())
    chances[rows, labels] -= 1
    back = chances / np.float32(len(labels))
    found: Arrays = []
    for layer in reversed(range(0, len(values), 2)):
        below = inputs[layer // 2]
        found = [below.T @ back, back.sum(0), *found]
        if layer:
            back = (back @ values[layer].T) * (below > 0)
    return loss, found


def _of_embedding(values: Arrays, ids: np.ndarray, wanted: np.ndarray) -> tuple[float, Arrays]:
    rows, weights = values
    sums = rows.reshape(*ids.shape, -1).sum(1)
    wrong = (sums @ weights)[:, 0] - wanted
    back = (2 / np.float32(len(wanted)) * wrong)[:, None]
    of_rows = np.repeat(back @ weights.T, ids.shape[1], axis=0)
    return float(np.square(wrong).mean()), [of_rows, sums.T @ back]


def training(model: str, synchronous: bool) -> Workload:
    """A step of each worker."""
    import ray

    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False)
    server = ray.remote(ParameterServer).remote(model, synchronous)
    workers = [ray.remote(Worker).remote(server, model, index) for index in range(WORKERS)]
    losses: list[float] = []

    def run(iterations: int) -> None:
        losses[:] = ray.get([worker.run.remote(iterations) for worker in workers])[0]

    return Workload(run, facts=trained_alike(run, losses))
