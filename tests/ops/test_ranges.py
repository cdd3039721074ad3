from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


@pytest.mark.parametrize("bounds", [(5,), (2, 9), (2, 9, 3), (9, 2, -3), (0,), (3, 3), (0, 10, 5)])
def test_integers_are_as_pythons_range(bounds) -> None:
    tensor = tf.range(*bounds)
    assert tensor.dims == (len(range(*bounds)),)
    assert run_both(tensor).tolist() == list(range(*bounds))


@pytest.mark.parametrize("bounds", [(0.0, 1.0, 0.25), (1.0, -1.0, -0.75), (2.5,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_floats(bounds, dtype) -> None:
    result = run_both(tf.range(*bounds, dtype=dtype))
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(float), np.arange(*bounds), rtol=1e-2)


def test_bounds_from_data_and_of_mixed_types() -> None:
    n = tf.placeholder(tf.int32, [])
    assert tf.range(n).dims == (None,)
    assert run_both(tf.range(n), {n: 4}).tolist() == [0, 1, 2, 3]
    assert tf.range(n, delta=0.5).dtype == tf.float32
    assert tf.range(np.int64(3)).dtype == tf.int64
    assert run_both(tf.range(0, n, 0.5), {n: 1}).tolist() == [0.0, 0.5]


def test_impossible_ranges() -> None:
    with pytest.raises(ValueError, match="delta != 0"):
        tf.range(0, 3, 0)
    with pytest.raises(ValueError, match="start <= limit"):
        tf.range(3, 0)
    with pytest.raises(ValueError, match="start >= limit"):
        tf.range(0, 3, -1)


def test_linspace_ends_exactly() -> None:
    for dtype in (np.float32, np.float64, np.float16):
        start, stop = tf.constant(0.1, dtype), tf.constant(0.7, dtype)
        result = run_both(tf.linspace(start, stop, 7), rtol=1e-3)
        assert result.dtype == dtype
        assert result[0] == dtype(0.1) and result[-1] == dtype(0.7)
        np.testing.assert_allclose(result, np.linspace(0.1, 0.7, 7), rtol=1e-2)
    assert run_both(tf.linspace(3.0, 4.0, 1)).tolist() == [3.0]
    with pytest.raises(ValueError, match="num > 0"):
        tf.linspace(0.0, 1.0, 0)
