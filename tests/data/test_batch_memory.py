"""Batches are aligned, so that compiled steps take them as they are, each in a place of its own."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.pipelines.batching import Batch
from runnel.pipelines.buffering import Shuffle
from runnel.pipelines.pipeline import END, PipelineRun
from runnel.pipelines.selecting import Repeat, Skip
from runnel.pipelines.sources import Slices
from runnel.queues.buffers import ALIGNMENT

ROWS = np.random.default_rng(0).random((50, 1500), np.float32)


class Seeds:
    """A shuffle that draws the same numbers each time."""

    def __call__(self):
        return np.random.default_rng(3).integers(0, 2**32, 10_000).tolist().pop

    def joined(self):
        return self


PIPELINES = {
    "slices, shuffled": lambda: Shuffle(Slices([ROWS]), 50, Seeds()),
    "shuffled again and again": lambda: Repeat(Shuffle(Slices([ROWS]), 50, Seeds()), 2),
    "one by one": lambda: Skip(Slices([ROWS]), 0),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_batches_are_aligned_and_stay_what_they_are(name):
    traversal = Batch(PIPELINES[name](), 8, True).iterate(PipelineRun())
    kept = []
    while (batch := traversal.next()) is not END:
        kept.append((batch[0], batch[0].copy()))
    assert len(kept) >= 6
    for array, content in kept:
        assert array.ctypes.data % ALIGNMENT == 0
        assert array.shape == (8, 1500)
        np.testing.assert_array_equal(array, content)
    rows = {row.tobytes() for row in ROWS}
    assert all(row.tobytes() in rows for array, _ in kept for row in array)


def test_strings_and_numbers_are_batched_as_ever():
    texts = np.array([b"a", b"bc", b""] * 3, object)
    numbers = np.arange(9)
    source = Shuffle(Slices([texts, numbers]), 9, Seeds())
    first = Batch(source, 9, False).iterate(PipelineRun()).next()
    assert [texts[n] for n in first[1]] == first[0].tolist()
