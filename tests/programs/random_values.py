"""Random ops with seeds: the same bits as TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.programs.program import Program


def _three_executions(build: Callable[[Any], Any]) -> Program:
    def program(tf: Any) -> list[list[Any]]:
        drawn = [build(tf)]
        return [drawn, drawn, drawn]

    return Program(program)


PROGRAMS = {
    name: _three_executions(build)
    for name, build in {
        "uniform": lambda tf: tf.random_uniform([7], seed=1),
        "uniform_range": lambda tf: tf.random_uniform([3, 3], -2.0, 5.0, seed=2),
        "uniform_float64": lambda tf: tf.random_uniform([5], dtype=tf.float64, seed=3),
        "uniform_float16": lambda tf: tf.random_uniform([5], dtype=tf.float16, seed=4),
        "uniform_int": lambda tf: tf.random_uniform([9], 3, 100, tf.int32, seed=5),
        "uniform_int64": lambda tf: tf.random_uniform([4], 0, 2**40, tf.int64, seed=6),
        "normal": lambda tf: tf.random_normal([2, 5], 1.0, 3.0, seed=7),
        "normal_float64": lambda tf: tf.random_normal([3], dtype=tf.float64, seed=8),
        "truncated_normal": lambda tf: tf.truncated_normal([11], 0.5, 2.0, seed=9),
        "shuffle": lambda tf: tf.random_shuffle(tf.range(10), seed=10),
        "multinomial": lambda tf: tf.multinomial([[0.1, 2.0, -1.0], [3.0, 0.0, 0.0]], 6, seed=11),
        "random_crop": lambda tf: tf.random_crop(tf.reshape(tf.range(30), [5, 6]), [2, 3], seed=12),
        "stateless_uniform": lambda tf: tf.random.stateless_uniform([5], seed=[1, 2]),
        "stateless_normal": lambda tf: tf.random.stateless_normal([5], seed=[3, 4]),
        "initializers": lambda tf: tf.concat(
            [
                tf.reshape(initializer([3, 4], dtype=tf.float32), [-1])
                for initializer in (
                    tf.glorot_uniform_initializer(seed=13),
                    tf.glorot_normal_initializer(seed=14),
                    tf.variance_scaling_initializer(2.0, "fan_out", seed=15),
                    tf.truncated_normal_initializer(stddev=0.1, seed=16),
                )
            ],
            0,
        ),
    }.items()
}
