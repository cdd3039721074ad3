"""The same program built in runnel and in TensorFlow gives the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel
from tests.conformance.side_by_side import tensorflow


def assert_same_fetches(build: Callable[[Any], Any], rtol: float = 1e-5) -> None:
    """``build(tf)`` returns a structure of fetches, whose values are compared."""
    found = []
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default(), tf.Session() as sess:
            fetches = build(tf)
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            found.append(sess.run(fetches))
    assert_same_values(*found, rtol=rtol)


def assert_same_values(ours: Any, theirs: Any, rtol: float = 1e-5, where: str = "") -> None:
    """Asserts that two structures have the same values, types and shapes."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            assert_same_values(ours[key], theirs[key], rtol, f"{where}[{key!r}]")
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_values(a, b, rtol, f"{where}[{i}]")
    elif hasattr(ours, "nested_row_splits"):
        parts = [[one.flat_values, *one.nested_row_splits] for one in (ours, theirs)]
        assert_same_values(*parts, rtol, where)
    elif ours is None or theirs is None:
        assert ours is theirs, where
    else:
        a, b = np.asarray(ours), np.asarray(theirs)
        assert a.dtype.kind == b.dtype.kind or {a.dtype.kind, b.dtype.kind} <= set("OS"), where
        assert a.shape == b.shape, (where, a.shape, b.shape)
        if a.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6, err_msg=where)
            assert a.dtype == b.dtype, where
        else:
            assert a.tolist() == b.tolist(), where
            assert a.dtype.kind in "OS" or a.dtype == b.dtype, where
