"""The order that sorts integers: NumPy's stable one, for every type and any range."""

import numpy as np
import pytest

from runnel.ops.stable_order import stable_order

TYPES = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.float32]


def stably_sorted(values, descending):
    """By Python's sort, which is stable."""
    sign = -1 if descending else 1
    return sorted(range(len(values)), key=lambda i: sign * values[i])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 1000])
@pytest.mark.parametrize("dtype", TYPES)
def test_equal_values_keep_their_order(dtype, count, descending):
    rng = np.random.default_rng(count)
    values = rng.integers(0, 30, count).astype(dtype)
    assert stable_order(values, descending).tolist() == stably_sorted(values.tolist(), descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_the_whole_range_of_a_type_is_sorted(dtype, descending):
    limits = np.iinfo(dtype)
    near = [int(limits.min), int(limits.min) + 1, int(limits.max), int(limits.max) - 1]
    values = np.array(near * 40, dtype)
    assert stable_order(values, descending).tolist() == stably_sorted(values.tolist(), descending)
    high = np.array(near[2:] * 40, dtype)  # far from zero, near each other
    assert stable_order(high, descending).tolist() == stably_sorted(high.tolist(), descending)
