"""Random training programs against TensorFlow: layers, tables, control flow, an optimizer.

Each runs for some steps, over batches of changing sizes, as sessions run it that are given no
options, and in the tiers. The tests run some; to run others::

    python -m tests.conformance.generated_training --seed 0 --programs 500

prints each program that differs with as few parts as it needs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # for its recurrent cells
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import tensorflow.compat.v1 as reference

import runnel
from tests.both_tiers import assert_same
from tests.training_programs.motifs import MOTIFS, WIDTH

reference.disable_v2_behavior()

LEVELS = {"default": 0, "interpreted": -1, "compiled": 1}
OPTIMIZERS = {
    "gradient descent": lambda train, step: train.GradientDescentOptimizer(0.05),
    "momentum": lambda train, step: train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda train, step: train.AdamOptimizer(train.exponential_decay(0.02, step, 2, 0.9)),
    "adagrad": lambda train, step: train.AdagradOptimizer(0.05),
    "rmsprop": lambda train, step: train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
    "ftrl": lambda train, step: train.FtrlOptimizer(0.05, l1_regularization_strength=0.01),
    "adadelta": lambda train, step: train.AdadeltaOptimizer(0.1),
}
APPLIED = ("always", "clipped", "in a branch", "accumulated")


@dataclass(frozen=True)
class TrainingProgram:
    """What a program is made of; ``motifs`` are names, each with the seed of its choices."""

    seed: int
    motifs: tuple[tuple[str, int], ...]
    optimizer: str
    applied: str
    use_resource: bool
    steps: int = 4

    def feeds(self) -> list[tuple[np.ndarray, bool, int]]:
        """For each step the rows, whether it trains, and a number of iterations."""
        rng = np.random.default_rng(self.seed)
        sizes = [5] * self.steps if self.seed % 2 else rng.integers(1, 6, self.steps)
        return [
            (rng.uniform(-1, 1, (size, WIDTH)), bool(rng.integers(2)), int(rng.integers(4)))
            for size in sizes
        ]

    def simpler(self) -> Iterable[TrainingProgram]:
        """The same with one part less."""
        for i in range(len(self.motifs)):
            yield replace(self, motifs=self.motifs[:i] + self.motifs[i + 1 :])
        if self.optimizer != "gradient descent":
            yield replace(self, optimizer="gradient descent")
        if self.applied != "always":
            yield replace(self, applied="always")


def random_training_program(seed: int) -> TrainingProgram:
    """The program of a seed."""
    rng = random.Random(seed)
    names = rng.choices(list(MOTIFS), k=rng.randint(2, 6))
    return TrainingProgram(
        seed,
        tuple((name, rng.randrange(1 << 30)) for name in names),
        rng.choice(list(OPTIMIZERS)),
        rng.choice(APPLIED),
        rng.random() < 0.5,
    )


class Builder:
    """A program while it is built, for its motifs: variables, inputs, choices."""

    def __init__(self, tf: Any, use_resource: bool) -> None:
        self.tf = tf
        self._use_resource = use_resource
        self._rng = random.Random(0)
        self._count = 0
        self.states: list[Any] = []
        self.x = tf.placeholder(tf.float64, [None, WIDTH])
        self.training = tf.placeholder(tf.bool, [])
        self.count = tf.placeholder(tf.int32, [])

    def choose_by(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return self._rng.choice(choices)

    def flip(self) -> bool:
        return self._rng.random() < 0.5

    def number(self, most: int) -> int:
        return self._rng.randrange(most)

    def name(self) -> str:
        self._count += 1
        return f"part{self._count}"

    def variable(self, *shape: int, trainable: bool = True) -> Any:
        value = np.random.default_rng(self._rng.randrange(1 << 30)).uniform(-1, 1, shape)
        return self.tf.get_variable(
            self.name(), initializer=value, trainable=trainable, use_resource=self._use_resource
        )

    def state(self, *shape: int) -> Any:
        """A variable that the program itself updates."""
        self.states.append(self.variable(*shape, trainable=False))
        return self.states[-1]

    def rows(self, count: int) -> Any:
        """A row of a table for each row of the input."""
        tf = self.tf
        return tf.floormod(tf.cast(tf.floor(self.x[:, 0] * 7.0), tf.int32), count)


def _built(tf: Any, program: TrainingProgram, use_resource: bool) -> tuple[Builder, list[Any]]:
    """The program in the default graph; what a step fetches."""
    tf.set_random_seed(7)
    built = Builder(tf, use_resource)
    matrices = [tf.matmul(built.x, built.variable(WIDTH, WIDTH))]
    for name, seed in program.motifs:
        built.choose_by(seed)
        matrices.append(MOTIFS[name](built, built.one_of(matrices[-3:])))
    loss = tf.add_n([tf.reduce_mean(tf.square(tf.tanh(matrix))) for matrix in matrices])
    step = tf.get_variable(
        "step", initializer=np.int64(0), trainable=False, use_resource=use_resource
    )
    built.states.append(step)
    optimizer = OPTIMIZERS[program.optimizer](tf.train, step)
    pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
    with tf.control_dependencies(matrices):
        train = _applied(tf, program.applied, built, optimizer, pairs, step)
    with tf.control_dependencies([train]):
        return built, [loss, tf.constant(1)]


def _applied(tf: Any, how: str, built: Builder, optimizer: Any, pairs: list[Any], step: Any) -> Any:
    if how == "clipped":
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
        pairs = [(g, v) for g, (_, v) in zip(clipped, pairs, strict=True)]
    if how in ("always", "clipped"):
        return optimizer.apply_gradients(pairs, step)
    pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs]
    if how == "in a branch":
        apply = lambda: tf.group(optimizer.apply_gradients(pairs, step))  # noqa: E731
        return tf.cond(step % 3 < 2, apply, lambda: tf.group(step.assign_add(1)))
    sums = [built.state(*v.shape.as_list()) for _, v in pairs]
    added = [total.assign_add(g) for total, (g, _) in zip(sums, pairs, strict=True)]

    def apply_all() -> Any:
        totals = [(total.read_value(), v) for total, (_, v) in zip(sums, pairs, strict=True)]
        with tf.control_dependencies([optimizer.apply_gradients(totals, step)]):
            return tf.group(*[total.assign(tf.zeros_like(total.read_value())) for total in sums])

    with tf.control_dependencies(added):
        return tf.cond(tf.equal(built.count % 2, 0), apply_all, tf.no_op)


def outcome(tf: Any, program: TrainingProgram, use_resource: bool, level: int = 0) -> list[Any]:
    """What each step fetches, and all variables after it."""
    config = tf.ConfigProto(device_count={"CPU": 2})
    if tf is runnel:
        config.graph_options.optimizer_options.global_jit_level = level
    with tf.Graph().as_default():
        built, fetches = _built(tf, program, use_resource)
        variables = [*tf.trainable_variables(), *built.states]
        found = []
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            for x, training, count in program.feeds():
                feed = {built.x: x, built.training: training, built.count: count}
                found.append([*sess.run(fetches, feed), *sess.run(variables)])
        return found


def check(program: TrainingProgram, ways: Iterable[str] = LEVELS) -> None:
    """Asserts that TensorFlow and each way to run here give the same.

    TensorFlow defines the order of what touches a variable for its resources only.
    """
    expected = outcome(reference, program, use_resource=True)
    if not all(np.isfinite(value).all() for values in expected for value in values):
        return
    for way in ways:
        found = outcome(runnel, program, program.use_resource, LEVELS[way])
        assert_same(expected, found, rtol=1e-6, atol=1e-7)


def smallest(program: TrainingProgram, ways: Sequence[str]) -> TrainingProgram:
    """``program`` without the parts that its failure does not need."""
    for simpler in program.simpler():
        try:
            check(simpler, ways)
        except Exception:  # noqa: BLE001 (whatever it is)
            return smallest(simpler, ways)
    return program


def main() -> int:
    """Runs programs and prints those that fail; the exit status is 1 if any does."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--ways", nargs="+", choices=list(LEVELS), default=list(LEVELS))
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.programs):
        program = random_training_program(seed)
        try:
            check(program, options.ways)
        except Exception as error:  # noqa: BLE001 (told)
            failed += 1
            print(f"FAILED {smallest(program, options.ways)}\n{error}", flush=True)
    print(f"{options.programs} programs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
