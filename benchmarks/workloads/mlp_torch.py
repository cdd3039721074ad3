"""The MLP with Adam in PyTorch: eager with the fused Adam, optionally through `torch.compile`.

OpenMP's threads wait for each other by spinning, which can make two threads slower than one on a
model of this size. PyTorch may use all cores or one, whichever a short trial finds faster.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import cycle

import numpy
import torch

from benchmarks.workload import Workload
from benchmarks.workloads.mlp import CHECKED_STEPS, RATE, Batch, batches, initial_weights


def make_step(compiled: bool) -> Callable[[Batch], float]:
    """A training step over its own model."""
    layers: list[torch.nn.Module] = []
    for weights in initial_weights():
        layer = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights.T))
            layer.bias.zero_()
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), RATE, fused=True)

    def loss_of(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(images), labels)

    forward = torch.compile(loss_of) if compiled else loss_of

    def step(batch: Batch) -> float:
        # from_numpy shares the array's memory: nothing is copied on the way in.
        loss = forward(torch.from_numpy(batch[0]), torch.from_numpy(batch[1]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def training_step(compiled: bool = False) -> Workload:
    """One training step on a fresh batch from NumPy, with the loss brought back."""
    step = make_step(compiled)
    # PyTorch wants 64-bit labels; converting them in every step would be unfair.
    data = batches(label_type=numpy.int64)
    losses = [step(batch) for batch in data[:CHECKED_STEPS]]
    threads = choose_threads(lambda: [step(batch) for batch in data])
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            step(batch)

    return Workload(run, facts=lambda: {"losses": losses, "threads": threads})


def choose_threads(work: Callable[[], object]) -> int:
    """Set the number of threads, all cores or one, with which the work is faster."""
    all_cores = len(os.sched_getaffinity(0))

    def trial(threads: int) -> float:
        torch.set_num_threads(threads)
        work()
        times = []
        for _ in range(5):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        return min(times)

    fastest = min((all_cores, 1), key=trial)
    torch.set_num_threads(fastest)
    return fastest


if __name__ == "__main__":
    [only] = batches(1, numpy.int64)
    print(make_step(compiled=False)(only))
