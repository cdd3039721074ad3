"""Automatic placement against manual ones: the time of a step for three models.

    python -m benchmarks.placement

For each model, the graph without any device in it (placed by runnel), and the same graph placed by
hand in several ways. With a GPU the devices are CPU:0 and the GPUs; without one they are two CPU
devices of this process, each an XLA device of its own. Contenders take turns; medians are shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

import runnel as tf
from benchmarks import command
from benchmarks.interleaving import Sample, interleave
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Outcome, Settings, speed_row

Device = Callable[[int], str | None]
"""The device of the part of a model with a number."""
Model = Callable[[Device], tuple[Any, dict[Any, Any]]]

AUTOMATIC, BEST, WORST = "automatic", "the best by hand", "the worst by hand"


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
    found: dict[str, Device] = {AUTOMATIC: lambda part: None}
    for name in names:
        found[f"all on {name[1:]}"] = lambda part, name=name: name  # type: ignore[misc]
    found["alternating"] = lambda part: names[part % len(names)]
    found["halves"] = lambda part: names[-1] if part % 4 >= 2 else names[0]
    return found


class Placed:
    """A model placed in one way, run in this process."""

    def __init__(self, name: str, model: Model, device: Device, settings: Settings) -> None:
        self.name = name
        self._seconds = settings.seconds
        graph = tf.Graph()
        with graph.as_default():
            tf.set_random_seed(1)
            fetches, feed = model(device)
            init = tf.global_variables_initializer()
        cpus = 1 if tf.test.is_gpu_available() else 2
        session = tf.Session(graph=graph, config=tf.ConfigProto(device_count={"CPU": cpus}))
        session.run(init)
        self._run = lambda: session.run(fetches, feed)
        self.speeds = tf.explain_placement(session, fetches, feed).speeds
        self._repeat(settings.warm_up)  # until what pays is compiled

    def _repeat(self, seconds: float) -> Sample:
        count, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < seconds:
            self._run()
            count += 1
        return Sample((time.perf_counter() - start) / count, (time.process_time() - cpu) / count)

    def sample(self) -> Sample:
        """The time of a step, now."""
        return self._repeat(self._seconds)


def row_of(name: str) -> Callable[[Settings], list[Row]]:
    """What measures one model, placed automatically and by hand."""
    model = MODELS[name]

    def measure(settings: Settings) -> list[Row]:
        contenders = [Placed(n, model, device, settings) for n, device in placements().items()]
        speeds = next((c.speeds for c in contenders if c.name == AUTOMATIC), [])
        found = interleave(contenders, settings.rounds)
        automatic = found.pop(AUTOMATIC)
        by_hand = {n: measurement.wall.median for n, measurement in found.items()}
        best, worst = min(by_hand, key=by_hand.__getitem__), max(by_hand, key=by_hand.__getitem__)
        measured = {SUBJECT: automatic, BEST: found[best], WORST: found[worst]}
        return [
            speed_row(
                name,
                model.__doc__.splitlines()[0].rstrip(".") if model.__doc__ else name,
                "ms",
                Outcome(measured, {}),
                {SUBJECT: automatic.wall.scaled(1e3)},
                must_show="within 10 % of the best by hand",
                at_least={BEST: 0.9},
                notes=[
                    f"best by hand: {best}, {by_hand[best] * 1e3:.3g} ms; "
                    f"worst: {worst}, {by_hand[worst] * 1e3:.3g} ms",
                    *([f"the cost model went by {'; '.join(speeds)}"] if speeds else []),
                ],
            )
        ]

    return measure


ROWS = {name: row_of(name) for name in MODELS}


if __name__ == "__main__":
    # Before JAX starts; with a GPU it changes nothing that is measured.
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    on = "gpu" if tf.test.is_gpu_available() else "cpu"
    parser = command.parser_for(ROWS, "Measure automatic placement beside placements by hand.")
    command.run(f"placement_{on}", "automatic placement", ROWS, parser)
