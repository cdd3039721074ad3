"""Places in order: as NumPy's stable sort finds them."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.sorted_places import sorted_places


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
@pytest.mark.parametrize("span", [(0, 1), (0, 50), (5, 250)])
def test_places_are_sorted_and_equal_ones_stay_in_order(dtype, size, span):
    places = np.random.default_rng(size).integers(*span, size).astype(dtype)
    found = sorted_places(places)
    different, counts = np.unique(places, return_counts=True)
    np.testing.assert_array_equal(found.places, different)
    np.testing.assert_array_equal(found.lengths, counts)
    np.testing.assert_array_equal(found.order, np.argsort(places, kind="stable"))
    np.testing.assert_array_equal(found.starts, np.cumsum(counts) - counts)


@pytest.mark.parametrize("end", [np.iinfo(np.int64).max, np.iinfo(np.int64).min, -3])
def test_so_are_large_and_negative_ones(end):
    found = sorted_places(np.array([5, end, 0, end, 5]))
    assert found.places.tolist() == sorted({5, end, 0})
    assert [places.tolist() for places in np.split(found.order, found.starts[1:])] == [
        [i for i, place in enumerate([5, end, 0, end, 5]) if place == wanted]
        for wanted in found.places
    ]
