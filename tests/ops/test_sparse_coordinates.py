"""The order of sparse coordinates, against NumPy's ``lexsort``."""

import numpy as np
import pytest

from runnel.ops.sparse.coordinates import row_order


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("highest", [3, 100, 2**31, 2**62])
@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_rows_are_sorted_and_equal_ones_stay_in_their_order(rank, highest, count):
    rng = np.random.default_rng(count)
    for low in (0, -highest):
        indices = rng.integers(low, highest, (count, rank))
        expected = np.lexsort(indices.T[::-1])
        np.testing.assert_array_equal(row_order(indices), expected)
        np.testing.assert_array_equal(row_order(indices[expected]), np.arange(count))
