"""Learning rates that change with the global step, and moving averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.programs.program import Program, values

STEPS = np.array([0, 1, 5, 9, 10, 11, 25, 40, 100], np.int64)

Rate = Callable[[Any, Any], Any]

RATES: dict[str, Rate] = {
    "exponential": lambda tf, t: tf.train.exponential_decay(0.5, t, 10, 0.9),
    "exponential_staircase": lambda tf, t: tf.train.exponential_decay(0.5, t, 10, 0.9, True),
    "exponential_float64": lambda tf, t: tf.train.exponential_decay(np.float64(0.5), t, 10, 0.9),
    "natural_exp": lambda tf, t: tf.train.natural_exp_decay(0.5, t, 10, 0.3),
    "natural_exp_staircase": lambda tf, t: tf.train.natural_exp_decay(0.5, t, 10, 0.3, True),
    "inverse_time": lambda tf, t: tf.train.inverse_time_decay(0.5, t, 10, 0.3),
    "inverse_time_staircase": lambda tf, t: tf.train.inverse_time_decay(0.5, t, 10, 0.3, True),
    "piecewise": lambda tf, t: tf.train.piecewise_constant(t, [5, 10, 40], [1.0, 0.5, 0.1, 0.01]),
    "polynomial": lambda tf, t: tf.train.polynomial_decay(0.5, t, 30, 0.01, power=2.0),
    "polynomial_cycle": lambda tf, t: tf.train.polynomial_decay(0.5, t, 10, 0.01, cycle=True),
    "cosine": lambda tf, t: tf.train.cosine_decay(0.5, t, 40, alpha=0.1),
    "cosine_restarts": lambda tf, t: tf.train.cosine_decay_restarts(
        0.5, t, 8, t_mul=1.5, m_mul=0.8, alpha=0.05
    ),
    "cosine_restarts_equal": lambda tf, t: tf.train.cosine_decay_restarts(0.5, t, 8, t_mul=1.0),
    "linear_cosine": lambda tf, t: tf.train.linear_cosine_decay(
        0.5, t, 40, num_periods=2.5, alpha=0.1, beta=0.01
    ),
}


def over_steps(rate: Rate) -> Callable[..., list[list[Any]]]:
    """The rate at each of ``STEPS``."""
    return lambda tf, *steps: [[rate(tf, step) for step in steps]]


def averages(**options: Any) -> Callable[..., list[list[Any]]]:
    """The averages of variables that are assigned to, and of tensors, over some steps."""

    def build(tf: Any) -> list[list[Any]]:
        count = tf.get_variable("count", initializer=0, trainable=False)
        kinds = [
            tf.get_variable(
                f"of_{dtype}", initializer=values(3).astype(dtype), use_resource=resource
            )
            for dtype, resource in (("float32", False), ("float64", True))
        ]
        tensor = tf.cast(count, tf.float32) * tf.constant([1.0, -2.0])
        updates = {"num_updates": count} if options.get("num_updates") else {}
        average = tf.train.ExponentialMovingAverage(0.8, **{**options, **updates})
        with tf.control_dependencies([v.assign(v * 1.5 + 1) for v in kinds]):
            moved = tf.group(count.assign_add(1))
        with tf.control_dependencies([moved]):
            maintain = average.apply([*kinds, tensor])
        seen = [average.average(x) for x in (*kinds, tensor)]
        return [seen, [maintain], seen, [maintain], [maintain], seen]

    return build


PROGRAMS = {
    **{name: Program(over_steps(rate), tuple(STEPS)) for name, rate in RATES.items()},
    "average": Program(averages()),
    "average_num_updates": Program(averages(num_updates=True)),
    "average_zero_debias": Program(averages(zero_debias=True)),
}
