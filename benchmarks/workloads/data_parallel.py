"""Synchronous data parallelism over two processes: gradients are exchanged, no parameter server.

The contender's process is the first worker; the second is started with it and ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.interleaving import REPOSITORY
from benchmarks.results import cores
from benchmarks.workload import Workload
from benchmarks.workloads.cluster import end_with_parent, free_addresses

WORKERS = 2
SIZES = (784, 1024, 1024, 10)
BATCH = 128
RATE = 0.01
CHECKED_STEPS = 3
WARM_UP_STEPS = 100
"""Two workers that compile beside their steps take longer than one; a busy machine slows both."""


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
    return _by_two("training_step", contender)


def exchange(contender: str) -> Workload:
    """Both workers average an array as large as all gradients together."""
    return _by_two("exchange", contender)


def step_alone(contender: str) -> Workload:
    """Steps of one worker that exchanges nothing: what there is to compute."""
    step = STEPS["training_step", contender](0, [])
    return _repeated(step, lambda iterations: None)


def _by_two(what: str, contender: str) -> Workload:
    addresses = free_addresses(WORKERS)
    other = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps([what, contender, addresses])],
        stdin=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )

    def begin(iterations: int) -> None:
        assert other.stdin is not None
        other.stdin.write(f"{iterations}\n")
        other.stdin.flush()

    return _repeated(STEPS[what, contender](0, addresses), begin)


def _repeated(step: Callable[[], float], begin: Callable[[int], None]) -> Workload:
    """``begin`` tells the other worker how many steps come now."""

    def run(iterations: int) -> None:
        begin(iterations)
        for _ in range(iterations):
            step()

    begin(CHECKED_STEPS)
    checked = [step() for _ in range(CHECKED_STEPS)]
    run(WARM_UP_STEPS)
    return Workload(run, facts=lambda: {"checked": checked})


def _share_cores() -> int:
    """How many threads a worker computes with: two workers share the machine."""
    return max(1, cores() // WORKERS)


def _begin_graph(rank: int, addresses: list[str], by_xla: bool) -> str:
    """Begins a worker; returns what its sessions connect to."""
    os.environ["NPROC"] = str(_share_cores())  # XLA looks when it starts
    import runnel as tf

    if not addresses:
        return ""
    config = tf.ConfigProto()
    config.experimental.collective_nccl = by_xla
    return tf.train.Server({"worker": addresses}, "worker", rank, config=config).target


def _begin_torch(rank: int, addresses: list[str]) -> None:
    import torch

    torch.set_num_threads(_share_cores())
    if addresses:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = addresses[0].rsplit(":", 1)
        torch.distributed.init_process_group("gloo", rank=rank, world_size=WORKERS)


def _graph_step(rank: int, addresses: list[str], hint: str = "ring") -> Callable[[], float]:
    target = _begin_graph(rank, addresses, hint == "nccl")
    import runnel as tf

    with tf.Graph().as_default(), tf.device(f"/job:worker/task:{rank}" if target else ""):
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
        optimizer = tf.train.GradientDescentOptimizer(RATE)
        if target:
            optimizer = tf.train.CollectiveOptimizer(optimizer, WORKERS, communication_hint=hint)
        train = optimizer.minimize(loss)
        session = tf.Session(target)
        session.run(tf.global_variables_initializer())
        call = session.make_callable([train, loss], [x, y])
    fed = images, labels.astype(np.int32)
    return lambda: float(call(*fed)[1])


def _torch_step(rank: int, addresses: list[str]) -> Callable[[], float]:
    _begin_torch(rank, addresses)
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for weights in initial_weights():
        layer = nn.Linear(*weights.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights.T))
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    model: nn.Module = nn.Sequential(*layers[:-1])
    if addresses:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), RATE, fused=True)
    images, labels = (torch.from_numpy(array) for array in batch(rank))

    def step() -> float:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _graph_exchange(rank: int, addresses: list[str], hint: str = "ring") -> Callable[[], float]:
    target = _begin_graph(rank, addresses, hint == "nccl")
    import runnel as tf

    with tf.Graph().as_default(), tf.device(f"/job:worker/task:{rank}"):
        gradients = tf.get_variable("gradients", initializer=_gradients(rank))
        mean = tf.collectives.all_reduce(
            gradients, WORKERS, final_op="Div", communication_hint=hint
        )
        session = tf.Session(target)
        session.run(tf.global_variables_initializer())
        call = session.make_callable(mean[0])
    return lambda: float(call())


def _torch_exchange(rank: int, addresses: list[str]) -> Callable[[], float]:
    _begin_torch(rank, addresses)
    import torch

    gradients = torch.from_numpy(_gradients(rank))

    def step() -> float:
        mean = gradients.clone()  # it is reduced in its place
        torch.distributed.all_reduce(mean)
        return mean.div_(WORKERS)[0].item()

    return step


def _gradients(rank: int) -> np.ndarray:
    count = sum(rows * columns + columns for rows, columns in zip(SIZES, SIZES[1:], strict=False))
    return np.random.default_rng(rank).normal(size=count).astype(np.float32)


STEPS = {
    ("training_step", "runnel"): _graph_step,
    ("training_step", "runnel.xla"): partial(_graph_step, hint="nccl"),
    ("training_step", "pytorch"): _torch_step,
    ("exchange", "runnel"): _graph_exchange,
    ("exchange", "runnel.xla"): partial(_graph_exchange, hint="nccl"),
    ("exchange", "pytorch"): _torch_exchange,
}


def main() -> None:
    """The second worker."""
    what, contender, addresses = json.loads(sys.argv[1])
    end_with_parent()
    step = STEPS[what, contender](1, addresses)
    for line in sys.stdin:
        for _ in range(int(line)):
            step()


if __name__ == "__main__":
    main()
