"""The LSTM classifier in PyTorch: `nn.LSTM`, eager."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from benchmarks.workload import Workload
from benchmarks.workloads.lstm import (
    CHECKED_STEPS,
    HIDDEN,
    INPUTS,
    RATE,
    Batch,
    batch_of,
    initial_weights,
    repeated,
)
from benchmarks.workloads.mlp_torch import choose_threads


def _gates(columns: numpy.ndarray) -> torch.Tensor:
    """TensorFlow's gates i, j, f, o as PyTorch's rows i, f, g, o."""
    i, j, f, o = numpy.split(columns, 4, axis=-1)
    return torch.from_numpy(numpy.concatenate([i, f, j, o], axis=-1).T.copy())


def training_step() -> Workload:
    """One training step on a batch from NumPy, with the loss brought back."""
    weights = initial_weights()
    bias = weights.bias.copy()
    bias[2 * HIDDEN : 3 * HIDDEN] += 1.0
    lstm = torch.nn.LSTM(INPUTS, HIDDEN)
    readout = torch.nn.Linear(HIDDEN, weights.readout.shape[1], bias=False)
    values = {
        "weight_ih_l0": _gates(weights.kernel[:INPUTS]),
        "weight_hh_l0": _gates(weights.kernel[INPUTS:]),
        "bias_ih_l0": _gates(bias),
        "bias_hh_l0": torch.zeros(bias.shape),
    }
    lstm.load_state_dict(values)
    readout.load_state_dict({"weight": torch.from_numpy(weights.readout.T.copy())})
    # There are two biases in place of one: each gets half of the update.
    biases = [p for name, p in lstm.named_parameters() if name.startswith("bias")]
    matrices = [p for name, p in lstm.named_parameters() if name.startswith("weight")]
    matrices += readout.parameters()
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": biases, "lr": RATE / 2}]
    optimizer = torch.optim.SGD(groups, RATE, fused=True)

    def step(batch: Batch) -> float:
        outputs, _ = lstm(torch.from_numpy(batch.sequences))
        labels = torch.from_numpy(batch.labels).long()
        loss = torch.nn.functional.cross_entropy(readout(outputs.mean(0)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    workload = repeated(step)
    batch = batch_of(CHECKED_STEPS)
    threads = choose_threads(lambda: step(batch))
    return Workload(workload.run, lambda: {**workload.facts(), "threads": threads})
