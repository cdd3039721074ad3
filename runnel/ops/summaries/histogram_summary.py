"""``HistogramSummary``: how the elements of a tensor are distributed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from runnel.ops.summaries.serialized import (
    invalid,
    register_summary_op,
    serialized,
    single,
    summary_class,
    text,
)

_LARGEST = float(np.finfo(np.float64).max)
_CHUNK = 1 << 15
"""How many numbers are looked at at a time: so many stay in a processor's cache."""


@cache
def bucket_limits() -> np.ndarray:
    """TensorFlow's upper limits: each 1.1 times as far from zero as the one before."""
    limit, positive = 1.0e-12, []
    while limit < 1.0e20:
        positive.append(limit)
        limit *= 1.1  # not a power: TensorFlow's limits have the rounding of each product
    positive.append(_LARGEST)
    return np.array([*(-x for x in reversed(positive)), 0.0, *positive])


@cache
def _cells() -> tuple[np.ndarray, np.ndarray]:
    """For the upper 16 bits of a double: the bucket of the smallest such number, its limit.

    Those bits are the sign, the exponent and 4 bits of the fraction, so numbers that share them
    differ by less than a bucket is wide: they lie in one bucket or in two.
    """
    limits = bucket_limits()
    cells = np.arange(1 << 16, dtype=np.uint64)
    ends = np.stack([cells << np.uint64(48), (cells << np.uint64(48)) | np.uint64((1 << 48) - 1)])
    with np.errstate(invalid="ignore"):
        smallest = np.sort(ends.view(np.float64), axis=0)[0]  # the bits of negatives descend
    first = np.searchsorted(limits, smallest, side="right")
    first = np.minimum(first, len(limits) - 1)
    return first.astype(np.int32), limits[first]


def buckets_of(values: np.ndarray) -> np.ndarray:
    """The bucket of each number: the first whose limit is larger.

    A binary search over the limits would take ten times as long.
    """
    first, limits = _cells()
    cell = values.view(np.uint64) >> np.uint64(48)
    return np.minimum(first[cell] + (values >= limits[cell]), len(bucket_limits()) - 1)


class HistogramOfValues:
    """How values are distributed: what a ``HistogramProto`` says of them."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(bucket_limits()), np.int64)
        self._low, self._high, self._sum, self._squares = _LARGEST, -_LARGEST, 0.0, 0.0

    def add(self, values: Any) -> None:
        """Counts more values."""
        flat = np.ascontiguousarray(values).reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, flat.size, _CHUNK):
                chunk = flat[start : start + _CHUNK].astype(np.float64)
                self._low = np.minimum(self._low, chunk.min())
                self._high = np.maximum(self._high, chunk.max())
                self._counts += np.bincount(buckets_of(chunk), minlength=len(self._counts))
                self._sum = _running_sum(self._sum, chunk)
                self._squares = _running_sum(self._squares, chunk * chunk)

    def fill(self, proto: Any) -> None:
        """Writes it into a ``HistogramProto``.

        Neighbouring empty buckets are one, with the last one's limit.
        """
        kept = self._counts > 0
        kept[:-1] |= self._counts[1:] > 0  # the last of a run of empty ones
        kept[-1] = True
        proto.min, proto.max = float(self._low), float(self._high)
        proto.num, proto.sum, proto.sum_squares = self._counts.sum(), self._sum, self._squares
        proto.bucket_limit.extend(bucket_limits()[kept].tolist())
        proto.bucket.extend(self._counts[kept].astype(np.float64).tolist())


def fill_histogram(proto: Any, values: np.ndarray) -> None:
    """Writes the distribution of ``values`` into a ``HistogramProto``."""
    distribution = HistogramOfValues()
    distribution.add(values)
    distribution.fill(proto)


def _running_sum(total: float, values: np.ndarray) -> float:
    """``total`` and ``values`` added in order, as TensorFlow does; ``sum`` would add in pairs."""
    return float(np.cumsum(np.concatenate([[total], values]))[-1])


histogram_summary_op = register_summary_op(
    "HistogramSummary", inputs="tag: string, values: T", attrs="T: realnumbertype = DT_FLOAT"
)


@histogram_summary_op.kernel
def _(xp, tag, values, *, operation):
    name = text(single(tag, "tag"))
    numbers = np.asarray(values)
    summary = summary_class()()
    histogram = summary.value.add(tag=name).histo
    fill_histogram(histogram, numbers)
    if not np.isfinite([histogram.min, histogram.max]).all():
        first = numbers[~np.isfinite(numbers)][0]
        what = "Nan in summary histogram" if np.isnan(first) else "Infinity in Histogram"
        raise invalid(f"{what} for: {operation.name}")
    return serialized(summary)
