"""The k largest entries against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import FLOATS, compare, compare_in

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
CUBE = RNG.normal(size=(2, 3, 4))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8", "int64"])
@pytest.mark.parametrize("k", [1, 3])
def test_top_k(k, dtype):
    kind = FLOATS[dtype][0] if dtype in FLOATS else dtype
    x = RNG.integers(0, 5, (2, 3, 6)).astype(kind)
    compare(lambda tf, t: tf.nn.top_k(t, k), x)


def test_top_k_second_order():
    compare_in("float64", lambda tf, x: tf.nn.top_k(x, 2).values ** 3, CUBE, order=2)


def test_top_k_with_a_fed_k():
    compare(lambda tf, t, k: tf.nn.top_k(t, k), X, np.array(2, np.int32), order=0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_in_top_k(k):
    rows = [[1, 2, 3], [np.inf, 1, 0], [1, 1, 1], [1, 2, 3], [np.nan, 1, 2]]
    targets = np.array([1, 0, 2, 7, 1])
    p = np.array(rows, np.float32)
    compare(lambda tf, p, t: tf.nn.in_top_k(p, t, k), p, targets, order=0)
