"""Cutting a variable into parts along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runnel.graph.dtypes import DType
from runnel.graph.shapes import TensorShape

Partitioner = Callable[..., Sequence[int]]
"""``partitioner(shape=..., dtype=...)`` gives the number of parts along each dimension."""


class PartitionInfo:
    """Where in the whole variable a part begins; initializers are told this."""

    __slots__ = ("_full_shape", "_var_offset")

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        for what, value in (("full_shape", full_shape), ("var_offset", var_offset)):
            if not isinstance(value, list | tuple):
                raise TypeError(f"{what} must be a list or tuple, not {type(value).__name__}")
        if len(var_offset) != len(full_shape):
            raise ValueError(f"{var_offset} and {full_shape} are not of equal length")
        if any(not 0 <= offset < size for offset, size in zip(var_offset, full_shape)):
            raise ValueError(f"The offset {var_offset} lies outside of the shape {full_shape}")
        self._full_shape = full_shape
        self._var_offset = var_offset

    @property
    def full_shape(self) -> Sequence[int]:
        return self._full_shape

    @property
    def var_offset(self) -> Sequence[int]:
        return self._var_offset

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset of a part of this shape along the dimension that is cut."""
        dimension = self.single_slice_dim(shape)
        return 0 if dimension is None else self._var_offset[dimension]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The dimension that is cut, if a part has this shape; None when it is the whole."""
        if not isinstance(shape, list | tuple):
            raise TypeError(f"shape must be a list or tuple, not {type(shape).__name__}")
        if len(shape) != len(self._full_shape):
            raise ValueError(f"{shape} and {self._full_shape} are not of equal length")
        cut: int | None = None
        for i, (size, full, offset) in enumerate(zip(shape, self._full_shape, self._var_offset)):
            if offset + size > full:
                raise ValueError(
                    f"A part of shape {shape} at {self._var_offset} exceeds the whole, "
                    f"{self._full_shape}, in dimension {i}"
                )
            if size != full:
                if cut is not None:
                    raise ValueError(
                        f"A part of shape {shape} of {self._full_shape} is cut along both "
                        f"dimension {cut} and dimension {i}"
                    )
                cut = i
        return cut


def call_partitioner(partitioner: Partitioner, shape: TensorShape, dtype: DType) -> list[int]:
    """The number of parts along each dimension, checked."""
    if not shape.is_fully_defined():
        raise ValueError(f"The shape of a partitioned variable must be fully defined, not {shape}")
    if shape.rank == 0:
        raise ValueError("A partitioned variable must have rank at least 1, but this is a scalar")
    slicing = partitioner(shape=shape, dtype=dtype)
    if not isinstance(slicing, Sequence):
        raise ValueError(f"A partitioner must return a list of numbers, not {slicing!r}")
    if len(slicing) != shape.rank:
        raise ValueError(
            f"The partitioner returned {slicing}, but the variable has shape {shape}: "
            "it must return one number for each dimension"
        )
    if any(parts < 1 for parts in slicing):
        raise ValueError(f"The partitioner returned {slicing}: no dimension can have zero parts")
    if sum(parts > 1 for parts in slicing) > 1:
        raise ValueError(
            f"A variable can be cut along one dimension only: shape {shape}, partitioning {slicing}"
        )
    return list(slicing)


def cut_dimension(slicing: Sequence[int]) -> tuple[int, int]:
    """The dimension that is cut, and into how many parts."""
    for dimension, parts in enumerate(slicing):
        if parts > 1:
            return dimension, parts
    return 0, 1


def iterate_parts(
    full_shape: Sequence[int], parts: int, dimension: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Offset and shape of each part; the first ones are larger by one where it does not divide."""
    smallest, excess = divmod(full_shape[dimension], parts)
    offset = [0] * len(full_shape)
    for i in range(parts):
        shape = list(full_shape)
        shape[dimension] = smallest + (i < excess)
        yield list(offset), shape
        offset[dimension] += shape[dimension]
