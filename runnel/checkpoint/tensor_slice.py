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
    wanted = part.bounds(shape)
    read = []
    for other, values_of in stored:
        bounds = other.bounds(shape)
        both = [
            (max(a.start, b.start), min(a.stop, b.stop))
            for a, b in zip(wanted, bounds, strict=True)
        ]
        if all(start < stop for start, stop in both):
            values = values_of()
            if values.shape != tuple([b.stop - b.start for b in bounds]):
                raise ValueError(f"the slice {other} has the shape {values.shape}")
            read.append((bounds, both, values))
    sizes = [bound.stop - bound.start for bound in wanted]
    there = sum(prod(stop - start for start, stop in both) for _, both, _ in read)
    if there != prod(sizes):
        raise ValueError(f"{there} of the {prod(sizes)} elements of the slice {part} are there")
    for (_, one, _), (_, two, _) in combinations(read, 2):
        if all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, two, strict=True)):
            raise ValueError(f"some elements of the slice {part} are there twice")
    found = np.empty(sizes, storage)
    for bounds, both, values in read:
        here = tuple([slice(s - w.start, e - w.start) for (s, e), w in zip(both, wanted)])
        source = tuple([slice(s - b.start, e - b.start) for (s, e), b in zip(both, bounds)])
        found[here] = values[source]
    return found
