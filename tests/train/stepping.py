"""Taking steps with an optimizer in both tiers, from a loss or from gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, session


def steps_of(
    make: Callable[[], Any],
    initial: Any,
    gradients: Sequence[Any],
    indices: Sequence[Any] | None = None,
    resource: bool = False,
    dtype: Any = np.float32,
) -> list[np.ndarray]:
    """The variable after each of the gradients; with ``indices`` those are sparse."""
    results = []
    for level in (INTERPRETED, COMPILED):
        with tf.Graph().as_default() as graph:
            v = tf.Variable(np.asarray(initial, dtype), use_resource=resource)
            values = tf.placeholder(dtype, np.shape(gradients[0]))
            gradient: Any = values
            if indices is not None:
                places = tf.placeholder(tf.int32, np.shape(indices[0]))
                gradient = tf.IndexedSlices(values, places)
            train = make().apply_gradients([(gradient, v)])
            with session(level, graph) as sess:
                sess.run(tf.global_variables_initializer())
                seen = []
                for number, given in enumerate(gradients):
                    feed = {values: given}
                    if indices is not None:
                        feed[places] = indices[number]
                    sess.run(train, feed)
                    seen.append(sess.run(v))
        results.append(seen)
    assert_same(results[0], results[1])
    return results[0]


GRADIENTS = np.random.RandomState(0).uniform(-1, 1, (6, 3)).astype(np.float32)
INITIAL = np.array([1.0, -2.0, 0.5], np.float32)

ROWS = np.random.RandomState(1).uniform(-1, 1, (5, 4, 2)).astype(np.float32)
"""Five sparse gradients of four rows."""
PLACES = np.array([[0, 3, 0, 2], [1, 1, 1, 1], [4, 0, 2, 4], [3, 3, 0, 0], [2, 1, 0, 4]])
"""The rows that they are for: some twice, some never."""
TABLE = np.random.RandomState(2).uniform(-1, 1, (6, 2)).astype(np.float32)


def totals(rows: np.ndarray, places: np.ndarray, size: int = 6) -> dict[int, np.ndarray]:
    """The sum of the rows for each place that stands in ``places``."""
    return {int(p): rows[places == p].astype(np.float64).sum(0) for p in np.unique(places)}


def after(train: Any, fetches: Any, steps: int = 1, feed: Any = None) -> Any:
    """The values after some steps, the same in both tiers."""
    found = []
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(train, feed)
            found.append(sess.run(fetches))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    return found[0]


def quadratic(name: str = "v", **options: Any) -> tuple[Any, Any]:
    """A variable that begins as (1, -2), and the sum of its squares."""
    v = tf.Variable(np.array([1.0, -2.0], np.float32), name=name, **options)
    return v, tf.reduce_sum(v * v)
