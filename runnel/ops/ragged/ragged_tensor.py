"""Tensors with rows of different lengths."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.assertions import (
    assert_equal,
    assert_less_equal,
    assert_non_negative,
)
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.comparison import equal, not_equal
from runnel.ops.control import with_dependencies
from runnel.ops.fill import zeros
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.masking import boolean_mask, sequence_mask
from runnel.ops.ragged.ragged_ops import ragged_to_sparse_op, ragged_to_tensor_op
from runnel.ops.ragged.ragged_value import RaggedTensorValue
from runnel.ops.ragged.row_partitions import (
    as_splits,
    lengths_to_splits,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
)
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_all, reduce_any, reduce_max


class RaggedTensor:
    """``values`` cut into rows at ``row_splits``; make it with one of the ``from_`` methods.

    ``values`` is a tensor, or another ragged tensor: then two dimensions are ragged.

    Example:
        >>> rt = tf.RaggedTensor.from_row_splits([1, 2, 3], row_splits=[0, 2, 2, 3])
        >>> rt.to_tensor()  # [[1, 2], [0, 0], [3, 0]]
    """

    __array_priority__ = 100
    is_composite = True
    """It is made of tensors, and has operators of its own that take one."""

    def __init__(self, values: Any, row_splits: Tensor) -> None:
        self._values = values
        self._row_splits = row_splits

    # Making one ---------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``."""
        with name_scope(name, "RaggedFromRowSplits", [row_splits]):
            values = ragged_or_tensor(values)
            splits = as_splits(row_splits)
            TensorShape(splits.dims).assert_has_rank(1)
            if isinstance(values, RaggedTensor):
                values, splits = match_splits_types(values, splits)
            if validate:
                count = _rows(values, splits.dtype.base_dtype)
                message = "Arguments to from_row_splits do not form a valid RaggedTensor"
                checks = [
                    assert_equal(splits[0], cast(0, splits.dtype), message=message),
                    assert_non_negative(splits[1:] - splits[:-1], message=message),
                    assert_equal(splits[-1], count, message=message),
                ]
                splits = with_dependencies(checks, splits)
            return cls(values, splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row ``i`` has the next ``row_lengths[i]`` values."""
        with name_scope(name, "RaggedFromRowLengths", [row_lengths]):
            return cls.from_row_splits(values, lengths_to_splits(row_lengths), validate=validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """``values[i]`` belongs to row ``value_rowids[i]``; the numbers do not decrease."""
        with name_scope(name, "RaggedFromValueRowIds", [value_rowids, nrows]):
            ids = as_splits(value_rowids)
            if isinstance(nrows, int) and nrows < 0:
                raise ValueError(f"Expected nrows >= 0; got {nrows}")
            if validate:
                message = "Arguments to from_value_rowids do not form a valid RaggedTensor"
                checks = [assert_non_negative(ids[1:] - ids[:-1], message=message)]
                if nrows is not None:
                    limit = cast(nrows, ids.dtype)
                    checks.append(assert_less_equal(ids + 1, limit, message=message))
                ids = with_dependencies(checks, ids)
            return cls.from_row_splits(
                values, segment_ids_to_row_splits(ids, nrows), validate=validate
            )

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row ``i`` begins at ``row_starts[i]`` and ends where the next begins."""
        with name_scope(name, "RaggedFromRowStarts", [row_starts]):
            values = ragged_or_tensor(values)
            starts = as_splits(row_starts)
            end = reshape(_rows(values, starts.dtype.base_dtype), [1])
            return cls.from_row_splits(values, concat([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row ``i`` ends at ``row_limits[i]`` and begins where the one before ends."""
        with name_scope(name, "RaggedFromRowLimits", [row_limits]):
            limits = as_splits(row_limits)
            begin = cast([0], limits.dtype)
            return cls.from_row_splits(values, concat([begin, limits], 0), validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions at once, the outermost first."""
        with name_scope(name, "RaggedFromNestedRowSplits", list(nested_row_splits)):
            result = flat_values
            for splits in reversed(nested_row_splits):
                result = cls.from_row_splits(result, splits, validate=validate)
            return result

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions at once, by the lengths of their rows."""
        with name_scope(name, "RaggedFromNestedRowlengths", list(nested_row_lengths)):
            result = flat_values
            for lengths in reversed(nested_row_lengths):
                result = cls.from_row_lengths(result, lengths, validate=validate)
            return result

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions at once, by the row numbers of their values."""
        rows = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        if len(rows) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have same length as nested_value_rowids")
        with name_scope(name, "RaggedFromNestedValueRowIds", list(nested_value_rowids)):
            result = flat_values
            pairs = list(zip(nested_value_rowids, rows, strict=True))
            for ids, count in reversed(pairs):
                result = cls.from_value_rowids(result, ids, count, validate=validate)
            return result

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """The rows of ``tensor``, of the given ``lengths`` or without ``padding`` at their ends."""
        if lengths is not None and padding is not None:
            raise ValueError("Specify lengths or padding, but not both")
        kind = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
            tensor = convert_to_tensor(tensor, name="tensor")
            TensorShape(tensor.dims).with_rank_at_least(ragged_rank + 1)
            if ragged_rank > 1:
                return cls._from_deep_tensor(tensor, padding, ragged_rank, kind)
            sizes = shape_of(tensor, out_type=kind)
            if padding is not None:
                lengths = _lengths_without(tensor, padding, kind)
            if lengths is not None:
                lengths = as_splits(lengths, kind)
                mask = sequence_mask(lengths, sizes[1])
                values = boolean_mask(tensor, mask)
                return cls.from_row_lengths(values, lengths, validate=False)
            values = reshape(tensor, concat([reshape(sizes[0] * sizes[1], [1]), sizes[2:]], 0))
            if tensor.dims is not None:
                rows, columns = tensor.dims[:2]
                known = None if rows is None or columns is None else rows * columns
                values.set_shape([known, *tensor.dims[2:]])
            splits = sequence(sizes[0] + 1, dtype=kind) * sizes[1]
            return cls.from_row_splits(values, splits, validate=False)

    @classmethod
    def _from_deep_tensor(
        cls, tensor: Tensor, padding: Any, ragged_rank: int, kind: DType
    ) -> RaggedTensor:
        """The outer dimensions become uniform rows, the last one ragged."""
        sizes = shape_of(tensor, out_type=kind)
        flat = reshape(tensor, concat([reshape(sizes[0] * sizes[1], [1]), sizes[2:]], 0))
        if tensor.dims is not None:
            flat.set_shape([None, *tensor.dims[2:]])
        inner = cls.from_tensor(
            flat, padding=padding, ragged_rank=ragged_rank - 1, row_splits_dtype=kind
        )
        splits = sequence(sizes[0] + 1, dtype=kind) * sizes[1]
        return cls.from_row_splits(inner, splits, validate=False)

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """The rows of a sparse matrix whose values stand at the beginning of each row."""
        if not isinstance(st_input, SparseTensor):
            raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
        kind = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromSparse", [st_input.values]):
            TensorShape(st_input.shape).with_rank(2)
            rows, columns = st_input.indices[:, 0], st_input.indices[:, 1]
            made = cls.from_value_rowids(
                st_input.values,
                cast(rows, kind),
                cast(st_input.dense_shape[0], kind),
                validate=False,
            )
            expected = sequence(made.row_splits[-1]) - _repeated_starts(made)
            held = Assert(
                reduce_all(equal(cast(columns, kind), expected)),
                ["SparseTensor is not right-ragged", st_input.indices],
            )
            return made.with_flat_values(with_dependencies([held], made.flat_values))

    # What it is made of -------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The rows one after the other: a tensor, or another ragged one."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin; the last number is where the last row ends."""
        return self._row_splits

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        inner = self._values
        return inner.flat_values if isinstance(inner, RaggedTensor) else inner

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of every ragged dimension, the outermost first."""
        inner = self._values
        rest = inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()
        return (self._row_splits, *rest)

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> TensorShape:
        """As far as it is known beforehand; ragged dimensions are not."""
        splits = self._row_splits.dims
        rows = None if not splits or splits[0] is None else splits[0] - 1
        inner = self._values.shape
        if inner.rank is None:
            return TensorShape(None)
        return TensorShape([rows, None, *inner.as_list()[1:]])

    def get_shape(self) -> TensorShape:
        """As far as it is known beforehand."""
        return self.shape

    @property
    def op(self) -> Operation:
        return self.flat_values.op

    @property
    def graph(self) -> Any:
        return self._row_splits.graph

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The number of the row of each value."""
        return row_splits_to_segment_ids(self._row_splits, name)

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """How many rows there are."""
        kind = self._row_splits.dtype if out_type is None else as_dtype(out_type)
        return shape_of(self._row_splits, out_type=kind.base_dtype, name=name)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins in :attr:`values`."""
        return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends in :attr:`values`."""
        return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows of dimension ``axis``; a ragged tensor below the first."""
        with name_scope(name, "RaggedRowLengths"):
            splits = self._row_splits
            if axis == 0:
                return self.nrows()
            if axis == 1:
                return splits[1:] - splits[:-1]
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = shape_of(self._values, out_type=splits.dtype.base_dtype)
            lengths = zeros(sizes[: axis - 1], splits.dtype) + sizes[axis - 1]
            return self.with_values(lengths)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of the rows of every ragged dimension, the outermost first."""
        return tuple(splits[1:] - splits[:-1] for splits in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row numbers of every ragged dimension, the outermost first."""
        return tuple(row_splits_to_segment_ids(splits) for splits in self.nested_row_splits)

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """The shape of the smallest tensor that holds all rows, or its size along ``axis``."""
        kind = as_dtype(out_type) if out_type is not None else self._row_splits.dtype.base_dtype
        with name_scope(name, "RaggedBoundingBox"):
            if axis == 0:
                return self.nrows(kind)
            if axis == 1:
                return cast(self._longest(self._row_splits), kind)
            outer = [self.nrows(kind), *map(self._longest, self.nested_row_splits)]
            whole = concat(
                [
                    stack([cast(size, kind) for size in outer]),
                    shape_of(self.flat_values, out_type=kind)[1:],
                ],
                0,
            )
            return whole if axis is None else whole[axis]

    @staticmethod
    def _longest(splits: Tensor) -> Tensor:
        lengths = splits[1:] - splits[:-1]
        return reduce_max(concat([cast([0], splits.dtype), lengths], 0))

    # Changing what it is made of ----------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values, as many as before."""
        new_values = ragged_or_tensor(new_values)
        if isinstance(new_values, RaggedTensor):
            new_values, splits = match_splits_types(new_values, self._row_splits)
            return RaggedTensor(new_values, splits)
        return RaggedTensor(new_values, self._row_splits)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other innermost values."""
        inner = self._values
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with splits of int32 or int64."""
        kind = as_dtype(dtype)
        inner = self._values
        if isinstance(inner, RaggedTensor):
            inner = inner.with_row_splits_dtype(kind)
        return RaggedTensor(inner, cast(self._row_splits, kind))

    # Other forms --------------------------------------------------------------------------------

    def to_tensor(self, default_value: Any = None, name: str | None = None) -> Tensor:
        """A tensor that holds all rows, filled up with ``default_value`` (zeros, or "")."""
        with name_scope(name, "RaggedToTensor", [default_value]) as scope:
            flat = self.flat_values
            kind = flat.dtype.base_dtype
            if default_value is None:
                default_value = b"" if kind is dtypes.string else kind.as_numpy_dtype(0)
            default = convert_to_tensor(default_value, kind)
            splits = self.nested_row_splits
            result = ragged_to_tensor_op(
                cast(-1, dtypes.int64),
                flat,
                default,
                list(splits),
                row_partition_types=["ROW_SPLITS"] * len(splits),
                name=scope,
            )
            known = self.shape
            if known.rank is not None:
                result.set_shape(known)
            return result

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A sparse tensor of its values."""
        with name_scope(name, "RaggedToSparse") as scope:
            parts = ragged_to_sparse_op(list(self.nested_row_splits), self.flat_values, name=scope)
            return SparseTensor(*parts)

    def to_list(self) -> list[Any]:
        """Nested lists, of a tensor whose value is known while building."""
        known = [constant_value(part) for part in (self.flat_values, *self.nested_row_splits)]
        if any(value is None for value in known):
            raise ValueError("to_list needs a value that is known: fetch the tensor instead")
        return ragged_value(known).to_list()

    def eval(self, feed_dict: Any = None, session: Any = None) -> RaggedTensorValue:
        """Its value in a step of ``session``, or of the default session."""
        return ragged_value([part.eval(feed_dict, session) for part in ragged_parts(self)])

    def consumers(self) -> list[Operation]:
        """The operations that take a part of it."""
        found = [op for part in ragged_parts(self) for op in part.consumers()]
        return list(dict.fromkeys(found))

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    def __len__(self) -> int:
        raise TypeError("The length of a ragged tensor is not known while building: use nrows()")

    def __iter__(self) -> Any:
        raise TypeError("A ragged tensor cannot be iterated over while building: use map_fn")

    def __getitem__(self, key: Any) -> Any:
        from runnel.ops.ragged.ragged_indexing import ragged_getitem

        return ragged_getitem(self, key)


def ragged_parts(ragged: RaggedTensor) -> list[Tensor]:
    """Its innermost values, and the splits of every ragged dimension."""
    return [ragged.flat_values, *ragged.nested_row_splits]


def ragged_value(parts: Any) -> Any:
    """The value of a ragged tensor from those of its parts."""
    result, *splits = parts
    for cuts in reversed(splits):
        result = RaggedTensorValue(result, cuts)
    return result


def ragged_or_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """``value`` as a tensor; a ragged one, or the value of one, stays ragged."""
    if isinstance(value, RaggedTensorValue):
        flat = convert_to_tensor(value.flat_values, dtype, name=name)
        return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    if isinstance(value, RaggedTensor):
        return value
    return convert_to_tensor(value, dtype, name=name)


def match_splits_types(values: RaggedTensor, splits: Tensor) -> tuple[RaggedTensor, Tensor]:
    """Both with splits of one type: int64 if one of them has it."""
    if values.row_splits.dtype.base_dtype is splits.dtype.base_dtype:
        return values, splits
    return values.with_row_splits_dtype(dtypes.int64), cast(splits, dtypes.int64)


def _rows(values: Any, kind: DType) -> Tensor:
    if isinstance(values, RaggedTensor):
        return values.nrows(kind)
    return shape_of(values, out_type=kind)[0]


def _repeated_starts(ragged: RaggedTensor) -> Tensor:
    """For each value, where its row begins."""
    return gather(ragged.row_starts(), ragged.value_rowids())


def _lengths_without(tensor: Tensor, padding: Any, kind: DType) -> Tensor:
    """The lengths of rows without the paddings at their ends."""
    other = not_equal(tensor, convert_to_tensor(padding, tensor.dtype))
    assert tensor.dims is not None
    for _ in tensor.dims[2:]:
        other = reduce_any(other, axis=-1)
    columns = shape_of(other, out_type=kind)[1]
    places: Any = cast(other, kind) * expand_dims(sequence(columns) + 1, 0)
    return reduce_max(concat([zeros(stack([_rows(tensor, kind), 1]), kind), places], 1), axis=1)
