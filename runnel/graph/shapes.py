"""Partly known shapes.

Inside runnel a static shape is a plain ``Dims``: a tuple with ``None`` for each unknown
dimension, or ``None`` when even the rank is unknown. :class:`TensorShape` and
:class:`Dimension` dress it in TensorFlow 1's interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Dims = tuple[int | None, ...] | None


def merge_dims(a: Dims, b: Dims) -> Dims:
    """What is known when both ``a`` and ``b`` describe the same tensor."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise ValueError(f"Shapes {format_dims(a)} and {format_dims(b)} must have the same rank")
    merged = []
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x != y:
            raise ValueError(f"Shapes {format_dims(a)} and {format_dims(b)} are not compatible")
        merged.append(y if x is None else x)
    return tuple(merged)


def broadcast_dims(a: Dims, b: Dims) -> Dims:
    """The static shape of an elementwise operation on ``a`` and ``b``."""
    if a is None or b is None:
        return None
    if a == b:
        # Unknown dimensions that look alike may still be 1 and n; equal tuples of
        # known ones need no work.
        return a
    rank = max(len(a), len(b))
    a_padded = (1,) * (rank - len(a)) + a
    b_padded = (1,) * (rank - len(b)) + b
    out: list[int | None] = []
    for x, y in zip(a_padded, b_padded, strict=True):
        if x == 1:
            out.append(y)
        elif y == 1 or x == y:
            out.append(x)
        elif x is None:
            out.append(y)
        elif y is None:
            out.append(x)
        else:
            raise ValueError(
                f"Shapes {format_dims(a)} and {format_dims(b)} cannot be broadcast together"
            )
    return tuple(out)


def compatible_dims(a: Dims, b: Dims) -> bool:
    """True when some tensor could have both shapes."""
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    # A list and not a generator: this is run for every feed of every step.
    return all([x == y or x is None or y is None for x, y in zip(a, b, strict=True)])


def is_fully_defined(dims: Dims) -> bool:
    """True when the rank and every dimension are known."""
    return dims is not None and None not in dims


def num_elements(dims: Dims) -> int | None:
    """The number of elements, or None while a dimension is unknown."""
    if dims is None:
        return None
    total = 1
    for d in dims:
        if d is None:
            return None
        total *= d
    return total


def format_dims(dims: Dims) -> str:
    """``(2, ?, 3)``, or ``<unknown>``."""
    if dims is None:
        return "<unknown>"
    inner = ", ".join("?" if d is None else str(d) for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


def as_dims(value: Any) -> Dims:
    """The ``Dims`` that a user's ``value`` (TensorShape, list, int, None, proto) denotes."""
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value._dims
    kind = type(value)
    if kind is tuple or kind is list:
        for d in value:
            if d is not None and (type(d) is not int or d < 0):
                break
        else:
            return tuple(value)
    if isinstance(value, Dimension):
        return (value.value,)
    if hasattr(value, "unknown_rank") and hasattr(value, "dim"):  # a TensorShapeProto
        if value.unknown_rank:
            return None
        return tuple(None if d.size < 0 else int(d.size) for d in value.dim)
    if not isinstance(value, Iterable):
        value = (value,)
    return tuple(_as_dim(d) for d in value)


def _as_dim(value: Any) -> int | None:
    if isinstance(value, Dimension):
        return value.value
    if value is None:
        return None
    try:
        size = value.__index__()
    except AttributeError:
        raise TypeError(f"A dimension must be an integer or None, not {value!r}") from None
    if size == -1:
        return None
    if size < 0:
        raise ValueError(f"A dimension must be at least 0, not {size}")
    return size


class Dimension:
    """One dimension of a shape: an integer, or unknown.

    Arithmetic with an unknown dimension is unknown; comparing with one gives None.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = _as_dim(value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        if self.value is None:
            raise TypeError("An unknown Dimension has no integer value")
        return self.value

    __index__ = __int__

    def __eq__(self, other: Any) -> Any:
        try:
            value = _as_dim(other)
        except (TypeError, ValueError):
            return NotImplemented
        return None if self.value is None or value is None else self.value == value

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is None or equal is NotImplemented else not equal

    def _combine(self, other: Any, operation: Any) -> Dimension:
        value = _as_dim(other)
        known = self.value is not None and value is not None
        return Dimension(operation(self.value, value) if known else None)

    def __add__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a // b)

    __div__ = __floordiv__

    def __rfloordiv__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: b // a)

    def __mod__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Dimension:
        return self._combine(other, lambda a, b: b % a)

    def _compare(self, other: Any, operation: Any) -> bool | None:
        value = _as_dim(other)
        return None if self.value is None or value is None else operation(self.value, value)

    def __lt__(self, other: Any) -> bool | None:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> bool | None:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> bool | None:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> bool | None:
        return self._compare(other, lambda a, b: a >= b)

    def is_compatible_with(self, other: Any) -> bool:
        value = _as_dim(other)
        return self.value is None or value is None or self.value == value

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        self.assert_is_compatible_with(other)
        return Dimension(_as_dim(other) if self.value is None else self.value)


def dimension_value(dimension: Any) -> int | None:
    """The integer (or None) of a :class:`Dimension`; anything else unchanged."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


class TensorShape:
    """A shape of a tensor, possibly with unknown dimensions or unknown rank.

    Example:
        >>> TensorShape([None, 3]).merge_with([2, None])
        TensorShape([Dimension(2), Dimension(3)])
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        self._dims: Dims = as_dims(dims)

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_list(self) -> list[int | None]:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self) -> Any:
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        dim = [TensorShapeProto.Dim(size=-1 if d is None else d) for d in self._dims]
        return TensorShapeProto(dim=dim)

    def num_elements(self) -> int | None:
        return num_elements(self._dims)

    def is_fully_defined(self) -> bool:
        return is_fully_defined(self._dims)

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        return compatible_dims(self._dims, as_dims(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The narrowest shape that holds both."""
        a, b = self._dims, as_dims(other)
        if a is None or b is None or len(a) != len(b):
            return TensorShape(None)
        return TensorShape(tuple(x if x == y else None for x, y in zip(a, b, strict=True)))

    def merge_with(self, other: Any) -> TensorShape:
        return TensorShape(merge_dims(self._dims, as_dims(other)))

    def with_rank(self, rank: int) -> TensorShape:
        return TensorShape(merge_dims(self._dims, (None,) * rank))

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        other = TensorShape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def concatenate(self, other: Any) -> TensorShape:
        b = as_dims(other)
        return TensorShape(None if self._dims is None or b is None else self._dims + b)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of a shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else Dimension(None)
        if isinstance(key, slice):
            return TensorShape(self._dims[key])
        return Dimension(self._dims[key])

    def __eq__(self, other: Any) -> bool:
        try:
            return self._dims == as_dims(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        return format_dims(self._dims)

    def __repr__(self) -> str:
        return "TensorShape(None)" if self._dims is None else f"TensorShape({self.dims})"

    def __reduce__(self) -> tuple[Any, tuple[Dims]]:
        return TensorShape, (self._dims,)


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The :class:`Dimension` at ``index``, which is unknown where the rank is.

    Example:
        >>> tf.dimension_at_index(tf.TensorShape([None, 3]), 1)
        Dimension(3)
    """
    if not isinstance(shape, TensorShape):
        raise TypeError(f"dimension_at_index takes a TensorShape, not {shape!r}")
    return Dimension(None) if shape.dims is None else shape.dims[index]


def as_shape(value: Any) -> TensorShape:
    """``value`` as a :class:`TensorShape`."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of unknown rank, or of a given rank with unknown dimensions."""
    return TensorShape(None if rank is None else (None,) * rank)
