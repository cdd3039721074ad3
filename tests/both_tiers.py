"""Running the same fetches interpreted and compiled: each tier is the other's oracle."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import runnel as tf
from runnel.runtime.segment.beside import THREAD_NAME

INTERPRETED = -1
COMPILED = 1


def session(level: int, graph: Any = None) -> tf.Session:
    """A session forced to one tier."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(graph=graph, config=config)


def run_both(
    fetches: Any, feed_dict: Any = None, rtol: float = 1e-5, atol: float = 1e-6, init: Any = None
) -> Any:
    """The fetches' values, after asserting that both tiers agree on them."""
    results = []
    for level in (INTERPRETED, COMPILED):
        with session(level, _graph_of(fetches)) as sess:
            if init is not None:
                sess.run(init)
            results.append(sess.run(fetches, feed_dict))
    assert_same(results[0], results[1], rtol, atol)
    return results[0]


def assert_same(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Asserts that two fetched structures agree in type, shape and value."""
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y, rtol, atol)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key], rtol, atol)
    elif a is None:
        assert b is None
    else:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        assert a.shape == b.shape, (a.shape, b.shape)
        if a.dtype.kind in "OSUbiu":
            np.testing.assert_array_equal(a, b)
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol)


def await_compilations() -> None:
    """Waits for what is being compiled beside the steps so far."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(100)
            assert not thread.is_alive()


def _graph_of(fetches: Any) -> Any:
    while isinstance(fetches, list | tuple | dict):
        fetches = next(iter(fetches.values() if isinstance(fetches, dict) else fetches))
    return getattr(fetches, "graph", None)
