"""The contenders of the training on parameter servers train the same."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.workloads import cluster_training, cluster_training_mxnet, cluster_training_ray


def gradients(model, values, inputs, wanted):
    """The loss, and a gradient for each whole parameter."""
    if model == "mlp":
        return cluster_training_ray._of_perceptron(values, inputs, wanted)
    ids = inputs.reshape(-1)
    loss, found = cluster_training_ray._of_embedding([values[0][ids], values[1]], inputs, wanted)
    table = np.zeros_like(values[0])
    np.add.at(table, ids, found[0])
    return loss, [table, found[1]]


def loss_by_numpy(model, synchronous):
    """What training comes to in one process, where workers without order take turns."""
    workers, rate = cluster_training.WORKERS, cluster_training.RATE
    values = cluster_training.initial_values(model)
    data = [cluster_training.batches(model, index) for index in range(workers)]
    for step in range(cluster_training.ALIKE + 1):
        read = values
        for index in range(workers):
            batch = data[index][step % cluster_training.BATCHES]
            loss, found = gradients(model, read if synchronous else values, *batch)
            if index == 0:
                of_first = loss
            share = rate / workers if synchronous else rate
            values = [value - share * update for value, update in zip(values, found, strict=True)]
    return of_first


@pytest.mark.skipif(
    cluster_training_mxnet.interpreter() is None, reason="RUNNEL_MXNET names no interpreter"
)
@pytest.mark.parametrize(("synchronous", "tolerance"), [(True, 1e-5), (False, 1e-2)])
@pytest.mark.parametrize("model", ["mlp", "embedding"])
def test_mxnet_comes_to_the_loss_of_numpy(model, synchronous, tolerance):
    found = cluster_training_mxnet.final_loss(model, synchronous)
    assert found == pytest.approx(loss_by_numpy(model, synchronous), rel=tolerance)
