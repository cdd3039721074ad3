"""A rectangular part of a tensor: what a partitioned variable saves and restores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """For each dimension where the slice starts and how long it is (None: all of it)."""

    extents: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """A slice as TensorFlow writes it: ``0,10:-`` has 10 rows and all columns."""
        extents: list[tuple[int, int | None]] = []
        for dimension in text.split(":") if text else ():
            if dimension == "-":
                extents.append((0, None))
                continue
            start, comma, length = dimension.partition(",")
            if not comma or not start.isdecimal() or not length.isdecimal() or int(length) == 0:
                raise ValueError(
                    f"{text!r} is not a slice: a dimension is '-' or 'start,length', not "
                    f"{dimension!r}"
                )
            extents.append((int(start), int(length)))
        return cls(tuple(extents))

    @classmethod
    def from_proto(cls, proto: Any) -> TensorSlice:
        """The slice in a ``TensorSliceProto``."""
        return cls(
            tuple((e.start, e.length if e.HasField("length") else None) for e in proto.extent)
        )

    def as_proto(self, proto: Any) -> None:
        """Writes the slice into a ``TensorSliceProto``."""
        for start, length in self.extents:
            extent = proto.extent.add()
            if length is not None:
                extent.start, extent.length = start, length

    def bounds(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """The slice as an index of an array of ``shape``; an error where it does not fit."""
        if len(shape) != len(self.extents):
            raise ValueError(f"The slice {self} has not as many dimensions as the shape {shape}")
        found = []
        for (start, length), size in zip(self.extents, shape, strict=True):
            stop = size if length is None else start + length
            if not 0 <= start <= stop <= size:
                raise ValueError(f"The slice {self} is not inside of the shape {shape}")
            found.append(slice(start, stop))
        return tuple(found)

    def __str__(self) -> str:
        return ":".join("-" if n is None else f"{start},{n}" for start, n in self.extents)


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice] | None:
    """The whole shape and the slice in ``4 5 0,2:-``; None for an empty text: no slice."""
    if not text:
        return None
    *sizes, part = text.split(" ")
    if not all(size.isdecimal() for size in sizes):
        raise ValueError(f"{text!r} is not a shape followed by a slice, such as '4 5 0,2:-'")
    shape = tuple(map(int, sizes))
    found = TensorSlice.parse(part)
    found.bounds(shape)
    return shape, found


def assembled(
    shape: tuple[int, ...],
    part: TensorSlice,
    stored: Iterable[tuple[TensorSlice, Callable[[], np.ndarray]]],
    storage: np.dtype,
) -> np.ndarray:
    """The slice ``part`` of a tensor of ``shape``, made of the slices of it that are ``stored``.

    A ValueError says what does not fit or is missing; nothing is made before all is read.
    """
    stored = list(stored)
    given = dict(stored)
    wanted = part.bounds(shape)
    read = []
    for other in covering(shape, part, [other for other, _ in stored]):
        bounds, values = other.bounds(shape), given[other]()
        if values.shape != sizes_of(bounds):
            raise ValueError(f"the slice {other} has the shape {values.shape}")
        read.append((bounds, values))
    found = np.empty(sizes_of(wanted), storage)
    for bounds, values in read:
        both = overlap(wanted, bounds)
        assert both is not None
        found[inside(both, wanted)] = values[inside(both, bounds)]
    return found


Bounds = tuple[slice, ...]


def sizes_of(bounds: Bounds) -> tuple[int, ...]:
    """How many elements ``bounds`` has in each dimension."""
    return tuple([bound.stop - bound.start for bound in bounds])


def overlap(one: Bounds, other: Bounds) -> Bounds | None:
    """What is in both; None when that is nothing."""
    both = [
        slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(one, other, strict=True)
    ]
    return tuple(both) if all(bound.start < bound.stop for bound in both) else None


def inside(part: Bounds, whole: Bounds) -> Bounds:
    """Where ``part`` is, counted from the beginning of ``whole``."""
    return tuple(
        [slice(p.start - w.start, p.stop - w.start) for p, w in zip(part, whole, strict=True)]
    )


def covering(
    shape: tuple[int, ...], part: TensorSlice, stored: Iterable[TensorSlice]
) -> list[TensorSlice]:
    """Those of the slices ``stored`` of which ``part`` of a tensor of ``shape`` is made.

    A ValueError says what does not fit, is missing or is there twice.
    """
    wanted = part.bounds(shape)
    shared = [(other, overlap(wanted, other.bounds(shape))) for other in stored]
    found = [(other, both) for other, both in shared if both is not None]
    there, count = sum(prod(sizes_of(both)) for _, both in found), prod(sizes_of(wanted))
    if there != count:
        raise ValueError(f"{there} of the {count} elements of the slice {part} are there")
    if any(overlap(one, two) is not None for (_, one), (_, two) in combinations(found, 2)):
        raise ValueError(f"some elements of the slice {part} are there twice")
    return [other for other, _ in found]
