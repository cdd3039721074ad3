"""Collectives of several devices of one process, beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as theirs
from tensorflow.python.ops import collective_ops

import runnel as tf

DEVICES = 3
CONFIG = {"device_count": {"CPU": DEVICES}}


def values(dtype: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [(rng.normal(size=shape) * 9).astype(dtype) for _ in range(DEVICES)]


def ours_and_theirs(describe: Any) -> tuple[list[Any], list[Any]]:
    """What each device gets; ``describe(frontend, collectives, i)`` is the member of device i."""
    found = []
    for frontend, collectives in ((tf, tf.collectives), (theirs, collective_ops)):
        with frontend.Graph().as_default():
            fetches = []
            for i in range(DEVICES):
                with frontend.device(f"/cpu:{i}"):
                    fetches.append(describe(frontend, collectives, i))
            options = frontend.RunOptions()
            options.experimental.collective_graph_key = 1
            with frontend.Session(config=frontend.ConfigProto(**CONFIG)) as sess:
                found.append(sess.run(fetches, options=options))
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("merge", ["Add", "Mul", "Min", "Max"])
@pytest.mark.parametrize("final", ["Id", "Div"])
def test_reduce(dtype, merge, final):
    given = values(dtype, (4, 3))
    ours, wanted = ours_and_theirs(
        lambda frontend, collectives, i: collectives.all_reduce(
            frontend.constant(given[i]), DEVICES, 1, 1, merge, final
        )
    )
    for mine, other in zip(ours, wanted, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_gather():
    given = values("float32", (2, 3))
    ours, wanted = ours_and_theirs(
        lambda frontend, collectives, i: collectives.all_gather(
            frontend.constant(given[i]), DEVICES, 1, 1
        )
    )
    np.testing.assert_array_equal(ours, wanted)


def test_broadcast():
    [given, *_] = values("float32", (2, 3))

    def describe(frontend: Any, collectives: Any, i: int) -> Any:
        if i == 1:
            value = frontend.constant(given)
            if collectives is collective_ops:
                return collectives.broadcast_send(value, (2, 3), frontend.float32, DEVICES, 1, 1)
            return collectives.broadcast_send(value, DEVICES, 1, 1)
        return collectives.broadcast_recv((2, 3), frontend.float32, DEVICES, 1, 1)

    ours, wanted = ours_and_theirs(describe)
    np.testing.assert_array_equal(ours, wanted)
