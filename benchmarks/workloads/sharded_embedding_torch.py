"""The embedding of `sharded_embedding` in PyTorch, whole: `EmbeddingBag` with sparse gradients."""

from __future__ import annotations

from itertools import cycle

import torch

from benchmarks.workload import Workload
from benchmarks.workloads.mlp_torch import choose_threads
from benchmarks.workloads.sharded_embedding import (
    CHECKED_STEPS,
    FIRST_ROW,
    FIRST_WEIGHT,
    INITIAL_ACCUMULATOR,
    RATE,
    ROWS,
    UNITS,
    Batch,
    batches,
)


def training_step() -> Workload:
    """One training step on a fresh batch from NumPy, with the loss brought back."""
    table = torch.nn.EmbeddingBag(ROWS, UNITS, mode="sum", sparse=True)
    weights = torch.nn.Parameter(torch.full((UNITS, 1), FIRST_WEIGHT))
    with torch.no_grad():
        table.weight.fill_(FIRST_ROW)
    optimizer = torch.optim.Adagrad(
        [table.weight, weights], RATE, initial_accumulator_value=INITIAL_ACCUMULATOR
    )

    def step(batch: Batch) -> float:
        found = (table(torch.from_numpy(batch[0])) @ weights)[:, 0]
        loss = torch.mean(torch.square(found - torch.from_numpy(batch[1])))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    data = batches()
    losses = [step(batch) for batch in data[:CHECKED_STEPS]]
    threads = choose_threads(lambda: step(data[0]))
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            step(batch)

    return Workload(run, facts=lambda: {"losses": losses, "threads": threads})
