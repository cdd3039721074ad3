"""Every optimizer over many steps, with dense and with sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.programs.program import Program, integers, values

ROWS, WIDTH = 6, 3
# Each batch picks some rows twice and leaves some out; they differ from step to step.
BATCHES = integers(4, 5, high=ROWS - 1, seed=3)
TARGET = values(ROWS, WIDTH, seed=4)
STEPS = 20

Maker = Callable[[Any, Any], Any]
"""An optimizer of the library ``tf``; the second argument is the global step."""

OPTIMIZERS: dict[str, Maker] = {
    "gradient_descent": lambda tf, step: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf, step: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda tf, step: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adagrad": lambda tf, step: tf.train.AdagradOptimizer(0.3, initial_accumulator_value=0.2),
    "adagrad_da": lambda tf, step: tf.train.AdagradDAOptimizer(
        0.3, step, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "adagrad_da_plain": lambda tf, step: tf.train.AdagradDAOptimizer(0.3, step),
    "adadelta": lambda tf, step: tf.train.AdadeltaOptimizer(0.9, rho=0.8, epsilon=1e-3),
    "rmsprop": lambda tf, step: tf.train.RMSPropOptimizer(0.02, decay=0.8, epsilon=1e-4),
    "rmsprop_momentum": lambda tf, step: tf.train.RMSPropOptimizer(0.02, momentum=0.5),
    "rmsprop_centered": lambda tf, step: tf.train.RMSPropOptimizer(
        0.02, momentum=0.3, epsilon=1e-3, centered=True
    ),
    "adam": lambda tf, step: tf.train.AdamOptimizer(0.05),
    "adam_epsilon": lambda tf, step: tf.train.AdamOptimizer(0.05, 0.8, 0.95, epsilon=0.1),
    "ftrl": lambda tf, step: tf.train.FtrlOptimizer(0.3),
    "ftrl_regularized": lambda tf, step: tf.train.FtrlOptimizer(
        0.3,
        l1_regularization_strength=0.05,
        l2_regularization_strength=0.1,
        l2_shrinkage_regularization_strength=0.02,
    ),
    "ftrl_power": lambda tf, step: tf.train.FtrlOptimizer(
        0.3, learning_rate_power=-0.7, l1_regularization_strength=0.05
    ),
    "ftrl_beta": lambda tf, step: tf.train.FtrlOptimizer(0.3, beta=0.5),
    "proximal_gradient_descent": lambda tf, step: tf.train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.05, l2_regularization_strength=0.1
    ),
    "proximal_gradient_descent_plain": (
        lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1)
    ),
    "proximal_gradient_descent_float64": lambda tf, step: tf.train.ProximalGradientDescentOptimizer(
        np.float64(0.1), np.float64(0.05), np.float64(0.1)
    ),
    "proximal_adagrad": lambda tf, step: tf.train.ProximalAdagradOptimizer(
        0.3, l1_regularization_strength=0.05, l2_regularization_strength=0.1
    ),
    "proximal_adagrad_float64": lambda tf, step: tf.train.ProximalAdagradOptimizer(
        np.float64(0.3),
        l1_regularization_strength=np.float64(0.05),
        l2_regularization_strength=np.float64(0.1),
    ),
}


# A float32 reference variable and a float64 resource variable.
KINDS = (("float32", False), ("float64", True))


def kinds_for(name: str) -> tuple[tuple[str, bool], ...]:
    """The types of variables to train; TensorFlow's proximal optimizers take but one at a time."""
    if not name.startswith("proximal"):
        return KINDS
    dtype = "float64" if name.endswith("float64") else "float32"
    return ((dtype, False), (dtype, True))


def training(make: Maker, kinds: Any = KINDS) -> Callable[[Any], list[list[Any]]]:
    """Steps of training on variables of several kinds: what they are after 1, 2 and 20 steps."""

    def build(tf: Any) -> list[list[Any]]:
        count = tf.Variable(np.int64(0), name="count", trainable=False)
        batch = tf.gather(tf.constant(BATCHES), tf.cast(count % len(BATCHES), tf.int32))
        losses, variables = [], []
        for dtype, resource in kinds:
            for kind in ("dense", "sparse"):
                initial = values(ROWS, WIDTH, seed=5).astype(dtype)
                variable = tf.get_variable(
                    f"{kind}_{dtype}_{resource}", initializer=initial, use_resource=resource
                )
                target = tf.constant(TARGET.astype(dtype))
                if kind == "dense":
                    error = variable - target
                else:
                    error = tf.gather(variable, batch) - tf.gather(target, batch)
                losses.append(tf.cast(tf.reduce_sum(error * error * error * error), tf.float64))
                variables.append(variable)
        optimizer = make(tf, count)
        train = optimizer.minimize(tf.add_n(losses), global_step=count, var_list=variables)
        slots = [
            optimizer.get_slot(variable, name)
            for variable in variables
            for name in optimizer.get_slot_names()
        ]
        seen = [*variables, *slots, count]
        return [[train], seen, [train], seen, *[[train]] * (STEPS - 2), seen]

    return build


PROGRAMS = {
    name: Program(training(make, kinds_for(name)), rtol=2e-5, atol=2e-6)
    for name, make in OPTIMIZERS.items()
}
