"""Synchronous data parallelism over two processes: gradients are exchanged, no parameter server.

The contender's process is the first worker; the second is started with it and ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from benchmarks.interleaving import REPOSITORY
from benchmarks.workload import Workload
from benchmarks.workloads.cluster import end_with_parent, free_addresses

WORKERS = 2
SIZES = (784, 1024, 1024, 10)
BATCH = 128
RATE = 0.01
CHECKED_STEPS = 3


def initial_weights() -> list[np.ndarray]:
    """The same for every contender and worker."""
    rng = np.random.default_rng(0)
    pairs = zip(SIZES, SIZES[1:], strict=False)
    return [rng.normal(size=pair).astype(np.float32) / pair[0] ** 0.5 for pair in pairs]


def batch(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """What a worker trains on."""
    rng = np.random.default_rng(rank + 1)
    images = rng.normal(size=(BATCH, SIZES[0])).astype(np.float32)
    return images, rng.integers(0, SIZES[-1], BATCH)


def training_step(contender: str) -> Workload:
    """Steps of both workers; the loss is the first worker's."""
    addresses = free_addresses(WORKERS)
    arguments = {"contender": contender, "addresses": addresses}
    other = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    step = STEPS[contender](0, addresses)

    def begin(iterations: int) -> None:
        assert other.stdin is not None
        other.stdin.write(f"{iterations}\n")
        other.stdin.flush()

    def run(iterations: int) -> None:
        begin(iterations)
        for _ in range(iterations):
            step()

    begin(CHECKED_STEPS)
    losses = [step() for _ in range(CHECKED_STEPS)]
    return Workload(run, facts=lambda: {"losses": losses})


def _graph_step(rank: int, addresses: list[str]) -> Callable[[], float]:
    import runnel as tf

    server = tf.train.Server({"worker": addresses}, "worker", rank)
    with tf.Graph().as_default(), tf.device(f"/job:worker/task:{rank}"):
        images, labels = batch(rank)
        x = tf.placeholder(tf.float32, images.shape)
        y = tf.placeholder(tf.int32, labels.shape)
        value = x
        for number, weights in enumerate(initial_weights()):
            w = tf.get_variable(f"w{number}", initializer=weights)
            b = tf.get_variable(f"b{number}", initializer=np.zeros(weights.shape[1], np.float32))
            value = tf.matmul(value if number == 0 else tf.nn.relu(value), w) + b
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=value)
        loss = tf.reduce_mean(entropy)
        optimizer = tf.train.CollectiveOptimizer(tf.train.GradientDescentOptimizer(RATE), WORKERS)
        train = optimizer.minimize(loss)
        session = tf.Session(server.target)
        session.run(tf.global_variables_initializer())
        call = session.make_callable([train, loss], [x, y])
    fed = images, labels.astype(np.int32)
    return lambda: float(call(*fed)[1])


def _torch_step(rank: int, addresses: list[str]) -> Callable[[], float]:
    import torch
    from torch import nn

    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = addresses[0].rsplit(":", 1)
    torch.set_num_threads(1)  # two processes share two cores
    torch.distributed.init_process_group("gloo", rank=rank, world_size=WORKERS)
    layers: list[nn.Module] = []
    for weights in initial_weights():
        layer = nn.Linear(*weights.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights.T))
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), RATE, fused=True)
    images, labels = (torch.from_numpy(array) for array in batch(rank))

    def step() -> float:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


STEPS = {"runnel": _graph_step, "torch": _torch_step}


def main() -> None:
    """The second worker."""
    task = json.loads(sys.argv[1])
    end_with_parent()
    step = STEPS[task["contender"]](1, task["addresses"])
    for line in sys.stdin:
        for _ in range(int(line)):
            step()


if __name__ == "__main__":
    main()
