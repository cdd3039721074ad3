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
    """The bucket of each finite number: the first whose limit is larger.

    A binary search over the limits would take ten times as long.
    """
    first, limits = _cells()
    cell = values.view(np.uint64) >> np.uint64(48)
    return np.minimum(first[cell] + (values >= limits[cell]), len(bucket_limits()) - 1)


def fill_histogram(proto: Any, values: np.ndarray) -> None:
    """Writes the distribution of finite ``values`` into a ``HistogramProto``.

    Neighbouring empty buckets are one, with the last one's limit.
    """
    values = np.ascontiguousarray(values, np.float64).reshape(-1)
    limits = bucket_limits()
    proto.num = values.size
    if not values.size:
        proto.min, proto.max = _LARGEST, -_LARGEST
        proto.bucket_limit.append(_LARGEST)
        proto.bucket.append(0.0)
        return
    proto.min, proto.max = float(values.min()), float(values.max())
    with np.errstate(over="ignore"):
        # Running sums add in order, as TensorFlow does; ``sum`` would add in pairs.
        proto.sum = 0.0 + float(np.cumsum(values)[-1])
        proto.sum_squares = float(np.cumsum(values * values)[-1])
    counts = np.bincount(buckets_of(values), minlength=len(limits))
    kept = counts > 0
    kept[:-1] |= counts[1:] > 0  # the last of a run of empty ones
    kept[-1] = True
    proto.bucket_limit.extend(limits[kept].tolist())
    proto.bucket.extend(counts[kept].astype(np.float64).tolist())


histogram_summary_op = register_summary_op(
    "HistogramSummary", inputs="tag: string, values: T", attrs="T: realnumbertype = DT_FLOAT"
)


@histogram_summary_op.kernel
def _(xp, tag, values, *, operation):
    name = text(single(tag, "tag"))
    numbers = np.asarray(values).astype(np.float64)
    if not np.isfinite(numbers).all():
        what = "Nan in summary histogram" if np.isnan(numbers).any() else "Infinity in Histogram"
        raise invalid(f"{what} for: {operation.name}")
    summary = summary_class()()
    fill_histogram(summary.value.add(tag=name).histo, numbers)
    return serialized(summary)
