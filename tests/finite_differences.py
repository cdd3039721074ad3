"""Derivatives of any order against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as tf
from runnel.autodiff.gradient_checker import compute_gradient_error
from tests.both_tiers import INTERPRETED, session


def assert_derivatives(
    build: Callable[..., Any],
    *arrays: Any,
    order: int = 2,
    dtype: Any = np.float64,
    tolerance: float = 1e-6,
    delta: float = 1e-4,
) -> None:
    """Asserts that the gradients of ``build(*tensors)``, and theirs, are what differences say.

    ``build`` returns one tensor. From the second order on, what is differentiated is a fixed
    random weighting of the gradients before.
    """
    values = [np.asarray(a, dtype) for a in arrays]
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(v.dtype, v.shape) for v in values]
        y = build(*inputs)
        rng = np.random.default_rng(5)
        with session(INTERPRETED, graph) as sess, sess.as_default():
            for level in range(order):
                shape = np.shape(sess.run(y, dict(zip(inputs, values, strict=True))))
                found = tf.gradients(y, inputs)
                used = [i for i, g in enumerate(found) if g is not None]
                assert used, f"no gradient of order {level + 1}"
                error = compute_gradient_error(
                    [inputs[i] for i in used],
                    [values[i].shape for i in used],
                    y,
                    shape,
                    [values[i] for i in used],
                    delta=delta,
                    extra_feed_dict={x: values[i] for i, x in enumerate(inputs) if i not in used},
                )
                assert error < tolerance, f"order {level + 1}: off by {error}"
                parts = [
                    tf.reduce_sum(
                        tf.convert_to_tensor(found[i])
                        * rng.uniform(0.5, 1.5, values[i].shape).astype(dtype)
                    )
                    for i in used
                ]
                y = tf.add_n(parts)
