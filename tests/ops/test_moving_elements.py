"""Ops that only move elements keep every element type, strings included, in both tiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.ops.element_types import MOVABLE, sample, strings

MOVES: dict[str, tuple[Any, Any]] = {
    "reshape": (lambda x: tf.reshape(x, [3, -1]), lambda a: a.reshape(3, -1)),
    "expand_dims": (lambda x: tf.expand_dims(x, 1), lambda a: a[:, None]),
    "squeeze": (lambda x: tf.squeeze(x[:1], [0]), lambda a: a[0]),
    "transpose": (lambda x: tf.transpose(x), lambda a: a.T),
    "broadcast_to": (lambda x: tf.broadcast_to(x, [2, 2, 3]), lambda a: np.stack([a, a])),
    "concat": (lambda x: tf.concat([x, x], 1), lambda a: np.concatenate([a, a], 1)),
    "stack": (lambda x: tf.stack([x, x], 1), lambda a: np.stack([a, a], 1)),
    "unstack": (lambda x: tf.unstack(x)[1], lambda a: a[1]),
    "split": (lambda x: tf.split(x, [1, 2], 1)[1], lambda a: a[:, 1:]),
    "tile": (lambda x: tf.tile(x, [2, 1]), lambda a: np.tile(a, (2, 1))),
    "mirror pad": (
        lambda x: tf.pad(x, [[1, 0], [0, 2]], "SYMMETRIC"),
        lambda a: np.pad(a, [(1, 0), (0, 2)], "symmetric"),
    ),
    "reverse": (lambda x: tf.reverse(x, [1]), lambda a: a[:, ::-1]),
    "reverse_sequence": (
        lambda x: tf.reverse_sequence(x, [2, 3], 1),
        lambda a: np.stack([a[0, [1, 0, 2]], a[1, ::-1]]),
    ),
    "slice": (lambda x: tf.slice(x, [0, 1], [2, 2]), lambda a: a[:, 1:3]),
    "strided slice": (lambda x: x[::-1, 1:, None], lambda a: a[::-1, 1:, None]),
    "element": (lambda x: x[1, 2], lambda a: a[1, 2]),
    "gather": (lambda x: tf.gather(x, [2, 0], axis=1), lambda a: a[:, [2, 0]]),
    "gather batch": (
        lambda x: tf.gather(x, [[2, 0], [1, 1]], batch_dims=1),
        lambda a: np.stack([a[0, [2, 0]], a[1, [1, 1]]]),
    ),
    "gather_nd": (lambda x: tf.gather_nd(x, [[1, 2], [0, 0]]), lambda a: a[[1, 0], [2, 0]]),
    "one element by gather_nd": (lambda x: tf.gather_nd(x, [1, 2]), lambda a: a[1, 2]),
    "where": (lambda x: tf.where([True, False], x, x[::-1]), lambda a: np.stack([a[0], a[0]])),
    "boolean_mask": (lambda x: tf.boolean_mask(x, [False, True]), lambda a: a[1:]),
    "dynamic_partition": (lambda x: tf.dynamic_partition(x, [1, 0], 2)[0], lambda a: a[1:]),
    "dynamic_stitch": (lambda x: tf.dynamic_stitch([[1, 0]], [x]), lambda a: a[::-1]),
    "fill": (lambda x: tf.fill([2], x[0, 1]), lambda a: np.stack([a[0, 1]] * 2)),
}


@pytest.mark.parametrize("move", MOVES)
def test_every_element_type_is_moved_unchanged(move: str) -> None:
    build, expected = MOVES[move]
    arrays = [sample((2, 3), dtype) for dtype in MOVABLE]
    inputs = [tf.placeholder(a.dtype, [2, 3]) for a in arrays]
    results = run_both([build(x) for x in inputs], dict(zip(inputs, arrays, strict=True)))
    for array, result in zip(arrays, results, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, expected(array))


@pytest.mark.parametrize("move", MOVES)
def test_strings_are_moved(move: str) -> None:
    build, expected = MOVES[move]
    array = strings((2, 3))
    x = tf.placeholder(tf.string, [2, 3])
    result = run_both(build(x), {x: array})
    np.testing.assert_array_equal(result, expected(array))


@pytest.mark.parametrize("move", MOVES)
def test_inputs_are_not_modified(move: str) -> None:
    build, _ = MOVES[move]
    array = sample((2, 3), np.float32)
    before = array.copy()
    x = tf.placeholder(tf.float32, [2, 3])
    with tf.Session() as session:
        session.run(build(x), {x: array})
    np.testing.assert_array_equal(array, before)
