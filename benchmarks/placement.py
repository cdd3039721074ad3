"""Automatic placement against manual ones: the time of a step for three models.

    python -m benchmarks.placement

For each model, the graph without any device in it (placed by runnel), and the same graph placed by
hand in several ways. With a GPU the devices are CPU:0 and the GPUs; without one they are two CPU
devices of this process, each an XLA device of its own. Contenders take turns; medians are shown.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

if not os.path.exists("/dev/nvidia0"):  # before JAX starts
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import numpy as np  # noqa: E402

import runnel as tf  # noqa: E402

Device = Callable[[int], str | None]
"""The device of the part of a model with a number."""
Model = Callable[[Device], tuple[Any, dict[Any, Any]]]

ROUNDS = 15


def placed(device: str | None) -> Any:
    """``tf.device``, or nothing at all."""
    return nullcontext() if device is None else tf.device(device)


def chain(device: Device) -> tuple[Any, dict[Any, Any]]:
    """A training step of a network of six layers, one part each."""
    x = tf.placeholder(tf.float32, [256, 512])
    hidden = x
    for layer in range(6):
        with placed(device(layer)), tf.variable_scope(f"layer{layer}"):
            weights = tf.get_variable("weights", [512, 512])
            hidden = tf.tanh(tf.matmul(hidden, weights))
    with placed(device(5)):
        loss = tf.reduce_mean(tf.square(hidden))
    train = tf.train.GradientDescentOptimizer(0.01)
    variables = tf.trainable_variables()
    grads = tf.gradients(loss, variables, colocate_gradients_with_ops=True)
    step = train.apply_gradients(list(zip(grads, variables, strict=True)))
    data = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)
    return [loss, step], {x: data}


def branches(device: Device) -> tuple[Any, dict[Any, Any]]:
    """Four independent stacks over one input, one part each; their sum at the end."""
    x = tf.placeholder(tf.float32, [512, 384])
    ends = []
    for branch in range(4):
        with placed(device(branch)), tf.variable_scope(f"branch{branch}"):
            hidden = x
            for layer in range(4):
                weights = tf.get_variable(f"weights{layer}", [384, 384])
                hidden = tf.nn.relu(tf.matmul(hidden, weights))
            ends.append(tf.reduce_sum(hidden, 1))
    with placed(device(0)):
        total = tf.reduce_sum(tf.add_n(ends))
    data = np.random.default_rng(0).standard_normal((512, 384)).astype(np.float32)
    return total, {x: data}


def scalars(device: Device) -> tuple[Any, dict[Any, Any]]:
    """A schedule of learning rates: forty operations on fed scalars."""
    x = tf.placeholder(tf.float32, [])
    y = x
    for number in range(20):
        with placed(device(number)):
            y = tf.minimum(y * 1.01, 100.0 + number)
    return y, {x: np.float32(1.0)}


MODELS: dict[str, Model] = {"chain": chain, "branches": branches, "scalars": scalars}


def placements() -> dict[str, Device]:
    """By name: automatic, everything on one device, and ways to spread the parts."""
    gpus = len(tf.config.experimental.list_logical_devices("GPU"))
    if gpus:
        names = ["/cpu:0", *(f"/gpu:{number}" for number in range(gpus))]
    else:
        names = ["/cpu:0", "/cpu:1"]
    found: dict[str, Device] = {"automatic": lambda part: None}
    for name in names:
        found[f"all on {name[1:]}"] = lambda part, name=name: name  # type: ignore[misc]
    found["alternating"] = lambda part: names[part % len(names)]
    found["halves"] = lambda part: names[-1] if part % 4 >= 2 else names[0]
    return found


def contender(model: Model, device: Device) -> Callable[[], None]:
    """A function that runs one step."""
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(1)
        fetches, feed = model(device)
        init = tf.global_variables_initializer()
    cpus = 1 if tf.test.is_gpu_available() else 2
    session = tf.Session(graph=graph, config=tf.ConfigProto(device_count={"CPU": cpus}))
    session.run(init)
    return lambda: session.run(fetches, feed)


def measure(model: Model) -> dict[str, float]:
    """Median seconds of a step for each placement, taken in turns."""
    runs = {name: contender(model, device) for name, device in placements().items()}
    for run in runs.values():  # until what pays is compiled
        start = time.perf_counter()
        while time.perf_counter() - start < 1.0:
            run()
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(ROUNDS):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            count, start = 0, time.perf_counter()
            while time.perf_counter() - start < 0.1:
                runs[name]()
                count += 1
            samples[name].append((time.perf_counter() - start) / count)
    return {name: statistics.median(times) for name, times in samples.items()}


def main() -> None:
    results = {}
    for name, model in MODELS.items():
        times = results[name] = measure(model)
        manual = {n: t for n, t in times.items() if n != "automatic"}
        best, worst = min(manual, key=manual.__getitem__), max(manual, key=manual.__getitem__)
        print(f"{name}: automatic {times['automatic'] * 1e6:.0f} us")
        print(f"  best by hand  {manual[best] * 1e6:8.0f} us  ({best})")
        print(f"  worst by hand {manual[worst] * 1e6:8.0f} us  ({worst})", flush=True)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
