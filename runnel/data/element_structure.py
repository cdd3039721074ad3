"""The structure of elements: nested tuples and dictionaries, and what is in their places.

Unlike elsewhere a list is not a structure: it becomes a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import colocate_with
from runnel.graph.operation import Tensor
from runnel.graph.shapes import Dims, TensorShape, compatible_dims
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.ragged.ragged_tensor import RaggedTensor, ragged_or_tensor
from runnel.ops.ragged.ragged_variants import from_variant_op, to_variant_op
from runnel.ops.sparse.serialization import deserialize_op, serialize_many_op, serialize_op


def flatten(structure: Any) -> list[Any]:
    """What is in the places of ``structure``; that of a dictionary in the order of its keys."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, tuple):
        return [leaf for part in structure for leaf in flatten(part)]
    return [structure]


def pack_as(structure: Any, leaves: list[Any]) -> Any:
    """``leaves`` in the places of ``structure``."""
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, dict):
        made = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        ordered = {key: made[key] for key in structure}
        kind: Any = type(structure)
        return ordered if kind is dict else kind(ordered)
    if isinstance(structure, tuple):
        parts = [_packed(part, leaves) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return next(leaves)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """``structure`` with ``function`` of what is in each place."""
    return pack_as(structure, [function(leaf) for leaf in flatten(structure)])


class TypeSpec:
    """What stands in a place of the structure of elements: the kind of a value, and its shape.

    Example:
        >>> tf.TensorSpec([None, 3], tf.float32).is_compatible_with(tf.zeros([2, 3]))
        True
    """

    __slots__ = ()

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        raise NotImplementedError

    def merged(self, other: Any) -> Any:
        """What may be either; a TypeError if nothing may."""
        raise NotImplementedError

    def fits(self, other: Any) -> bool:
        """Whether what is ``other`` may be here."""
        raise NotImplementedError

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or values of another spec, may be here."""
        if isinstance(spec_or_value, TypeSpec):
            return self.fits(spec_or_value)
        try:
            return self.fits(place_of(_as_leaf(spec_or_value)))
        except (TypeError, ValueError):
            return False

    def most_specific_compatible_type(self, other: Any) -> Any:
        """What may be either; a ValueError if nothing may."""
        try:
            return self.merged(other)
        except TypeError as error:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}") from error


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TensorSpec(TypeSpec):
    """A tensor of a shape and type.

    Example:
        >>> tf.TensorSpec([None, 28, 28], tf.float32)
    """

    dtype: DType
    dims: Dims
    name: str | None

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._set(as_dtype(dtype), TensorShape(shape)._dims, name)

    def _set(self, *values: Any) -> None:
        for field, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same, under a name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """What ``tensor`` is, under its name or another one."""
        if not isinstance(tensor, Tensor):
            raise ValueError(f"`tensor` should be a tf.Tensor, not {tensor!r}")
        return TensorSpec(tensor.shape, tensor.dtype, name or tensor.op.name)

    @property
    def value_type(self) -> Any:
        return self.kind

    @property
    def component(self) -> tuple[DType, Dims]:
        """The type and shape of the tensor that stands for it in an element."""
        return self.dtype, self.dims

    @property
    def type(self) -> Any:
        return self.dtype

    @property
    def shape(self) -> Any:
        return TensorShape(self.dims)

    @property
    def kind(self) -> Any:
        return Tensor

    def to_component(self, value: Any) -> Tensor:
        """The tensor that stands for ``value`` in an element."""
        return convert_to_tensor(value, self.dtype)

    def to_slices(self, value: Any) -> Tensor:
        """The tensor whose rows stand for those of ``value``."""
        return self.to_component(value)

    def from_component(self, tensor: Tensor) -> Any:
        """The value that ``tensor`` stands for."""
        return tensor

    def batched(self, size: int | None) -> Any:
        """Several of them as one."""
        return type(self)(None if self.dims is None else (size, *self.dims), self.dtype)

    def unbatched(self) -> Any:
        """A row of it."""
        if self.dims is not None and not self.dims:
            raise ValueError("A scalar has no rows; tf.data.Dataset.from_tensors takes it whole.")
        return type(self)(None if self.dims is None else self.dims[1:], self.dtype)

    def merged(self, other: Any) -> Any:
        """What may be either."""
        if not self.is_like(other):
            raise TypeError(
                f"Two datasets to concatenate have different types: {self.type} ({self.kind}) and "
                f"{other.type} ({other.kind})"
            )
        return self.of_shape(self.shape.most_specific_compatible_shape(other.shape))

    def of_shape(self, shape: TensorShape) -> Any:
        """The same with another shape."""
        return type(self)(shape, self.dtype)

    def fits(self, other: Any) -> bool:
        """Whether what is ``other`` may be here."""
        return self.is_like(other) and compatible_dims(self.dims, other.dims)

    def is_like(self, other: Any) -> bool:
        """Whether ``other`` is the same but for its shape."""
        return type(other) is type(self) and other.dtype is self.dtype


class SparseTensorSpec(TensorSpec):
    """A sparse tensor: its three parts stand for it, in a variant.

    Example:
        >>> tf.SparseTensorSpec([None, 1000], tf.float32)
    """

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(shape, dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"

    @property
    def component(self) -> tuple[DType, Dims]:
        return dtypes.variant, None

    @property
    def kind(self) -> Any:
        return SparseTensor

    def to_component(self, value: Any) -> Tensor:
        sparse = SparseTensor.from_value(value)
        return serialize_op(
            sparse.indices, sparse.values, sparse.dense_shape, out_type=dtypes.variant
        )

    def to_slices(self, value: Any) -> Tensor:
        sparse = SparseTensor.from_value(value)
        return serialize_many_op(
            sparse.indices, sparse.values, sparse.dense_shape, out_type=dtypes.variant
        )

    def from_component(self, tensor: Tensor) -> Any:
        indices, values, shape = deserialize_op(tensor, dtype=self.dtype)
        rank = None if self.dims is None else len(self.dims)
        indices.set_shape([None, rank])
        shape.set_shape([rank])
        if self.dims and any(size is not None for size in self.dims):
            # What is known beforehand stays so.
            sizes = [shape[i] if size is None else size for i, size in enumerate(self.dims)]
            shape = convert_to_tensor(sizes, dtypes.int64)
        return SparseTensor(indices, values, shape)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RaggedTensorSpec(TensorSpec):
    """A ragged tensor, or, of ragged rank 0, a row of one: its parts stand for it, in a variant.

    It stands for itself among the classes of elements.

    Example:
        >>> tf.RaggedTensorSpec([None, None], tf.int32)
    """

    ragged_rank: int
    row_splits_dtype: DType

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        dims = TensorShape(shape)._dims
        if ragged_rank is None:
            if dims is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = len(dims) - 1
        if not isinstance(ragged_rank, int):
            raise TypeError(f"ragged_rank must be an int, not {ragged_rank!r}")
        if dims is not None and ragged_rank >= len(dims):
            raise ValueError(f"ragged_rank ({ragged_rank}) must be less than rank ({len(dims)}).")
        self._set(as_dtype(dtype), dims, None, ragged_rank, as_dtype(row_splits_dtype))

    def __repr__(self) -> str:
        parts = (self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype)
        return f"RaggedTensorSpec({', '.join(map(repr, parts))})"

    @property
    def component(self) -> tuple[DType, Dims]:
        return dtypes.variant, None

    @property
    def kind(self) -> Any:
        return self

    def to_component(self, value: Any) -> Tensor:
        return self._encoded(value, batched=False)

    def to_slices(self, value: Any) -> Tensor:
        if not self.ragged_rank:
            return convert_to_tensor(value, self.dtype)
        return self._encoded(value, batched=True)

    def _encoded(self, value: Any, batched: bool) -> Tensor:
        splits: list[Tensor] = []
        values = ragged_or_tensor(value, self.dtype)
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(self.row_splits_dtype)
            splits, values = list(values.nested_row_splits), values.flat_values
        if len(splits) != self.ragged_rank:
            raise ValueError(
                f"Ragged rank of value {len(splits)} does not match ragged rank of type "
                f"{self.ragged_rank}."
            )
        return to_variant_op(splits, values, Tsplits=self.row_splits_dtype, batched_input=batched)

    def from_component(self, tensor: Tensor) -> Any:
        splits, values = from_variant_op(
            tensor,
            input_ragged_rank=-1,
            output_ragged_rank=self.ragged_rank,
            Tvalues=self.dtype,
            Tsplits=self.row_splits_dtype,
        )
        if self.dims is not None:
            values.set_shape([None, *self.dims[self.ragged_rank + 1 :]] if splits else self.dims)
            if splits and self.dims[0] is not None:
                splits[0].set_shape([self.dims[0] + 1])
        return RaggedTensor.from_nested_row_splits(values, splits, validate=False)

    def batched(self, size: int | None) -> Any:
        return self._with_rank(TensorShape([size]).concatenate(self.shape), self.ragged_rank + 1)

    def unbatched(self) -> Any:
        if not self.ragged_rank:
            return TensorSpec(self.dims, self.dtype).unbatched()
        return self._with_rank(self.shape[1:], self.ragged_rank - 1)

    def _with_rank(self, shape: TensorShape, ragged_rank: int) -> RaggedTensorSpec:
        return RaggedTensorSpec(shape, self.dtype, ragged_rank, self.row_splits_dtype)

    def of_shape(self, shape: TensorShape) -> Any:
        return self._with_rank(shape, self.ragged_rank)

    def is_like(self, other: Any) -> bool:
        return type(other) is RaggedTensorSpec and self.of_shape(other.shape) == other


@dataclass(frozen=True, slots=True)
class VariantSpec(TypeSpec):
    """An object of the host, whose elements, or value, have a structure of their own."""

    structure: Any

    def made(self, variant: Tensor) -> Any:
        """The object that a variant stands for."""
        raise NotImplementedError

    @property
    def component(self) -> tuple[DType, Dims]:
        return dtypes.variant, ()

    @property
    def type(self) -> Any:
        return map_leaves(lambda place: place.type, self.structure)

    @property
    def shape(self) -> Any:
        return map_leaves(lambda place: place.shape, self.structure)

    @property
    def kind(self) -> Any:
        return map_leaves(lambda place: place.kind, self.structure)

    def to_component(self, value: Any) -> Tensor:
        return value._variant_tensor

    def from_component(self, tensor: Tensor) -> Any:
        return self.made(tensor)

    def to_slices(self, value: Any) -> Tensor:
        raise self._refusal()

    def batched(self, size: int | None) -> Any:
        raise self._refusal()

    def unbatched(self) -> Any:
        raise self._refusal()

    def merged(self, other: Any) -> Any:
        if type(other) is not type(self):
            raise self._refusal()
        return self

    def fits(self, other: Any) -> bool:
        return type(other) is type(self)

    def _refusal(self) -> TypeError:
        what = type(self).__name__
        return TypeError(f"Elements of {what} cannot be stacked, or taken apart, by rows.")


def as_elements(value: Any) -> Any:
    """``value`` with tensors, sparse and ragged tensors, and datasets in its places."""
    return map_leaves(_as_leaf, value)


def _as_leaf(value: Any) -> Any:
    if hasattr(value, "_variant_tensor") or isinstance(value, Tensor):
        return value
    if is_sparse(value):
        return SparseTensor.from_value(value)
    if value is None:
        raise TypeError("None is not an element of a dataset.")
    return ragged_or_tensor(value)


def place_of(leaf: Any) -> Any:
    """What stands in the place of ``leaf``."""
    if hasattr(leaf, "_variant_tensor"):
        return leaf._place
    if isinstance(leaf, SparseTensor):
        return SparseTensorSpec(leaf.shape, leaf.dtype.base_dtype)
    if isinstance(leaf, RaggedTensor):
        kinds = (leaf.dtype.base_dtype, leaf.ragged_rank, leaf.row_splits.dtype.base_dtype)
        return RaggedTensorSpec(leaf.shape, *kinds)
    return TensorSpec(leaf.dims, leaf.dtype.base_dtype)


def structure_of(elements: Any) -> Any:
    """The structure of what :func:`as_elements` gave."""
    return map_leaves(place_of, elements)


def structure_from(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The structure of elements of ``types``; ``shapes`` and ``classes`` are in its places."""
    leaves = flatten(types)
    dims: list[Any] = [None] * len(leaves)
    if shapes is not None:
        dims = [TensorShape(shape)._dims for shape in _up_to(types, shapes)]
    kinds: list[Any] = [Tensor] * len(leaves)
    if classes is not None:
        kinds = flatten(classes)
    if not len(leaves) == len(dims) == len(kinds):
        raise ValueError("output_types, output_shapes and output_classes differ in structure.")
    return pack_as(types, [_place(*each) for each in zip(leaves, dims, kinds, strict=True)])


def _place(dtype: Any, dims: Dims, kind: Any) -> Any:
    if isinstance(kind, TypeSpec):
        return kind  # it says all
    return (SparseTensorSpec if kind is SparseTensor else TensorSpec)(dims, dtype)


def _up_to(structure: Any, values: Any) -> list[Any]:
    """What ``values`` has in the places of ``structure``, which may be tuples themselves."""
    if isinstance(structure, dict):
        if not isinstance(values, dict) or values.keys() != structure.keys():
            raise TypeError(f"{values!r} has not the structure of {structure!r}")
        return [v for key in sorted(structure) for v in _up_to(structure[key], values[key])]
    if isinstance(structure, tuple):
        if not isinstance(values, tuple | list) or len(values) != len(structure):
            raise TypeError(f"{values!r} has not the structure of {structure!r}")
        return [v for a, b in zip(structure, values, strict=True) for v in _up_to(a, b)]
    return [values]


def values_up_to(structure: Any, values: Any) -> list[Any]:
    """What ``values`` has in the places of ``structure``; a TypeError where it has none."""
    return _up_to(structure, values)


def component_attrs(structure: Any) -> dict[str, Any]:
    """The attributes of operations that say what the components of elements are."""
    parts = [place.component for place in flatten(structure)]
    return {
        "output_types": [dtype for dtype, _ in parts],
        "output_shapes": [TensorShape(dims) for _, dims in parts],
    }


def to_components(structure: Any, elements: Any) -> list[Tensor]:
    """The tensors that stand for ``elements``."""
    leaves = zip(flatten(structure), flatten(elements), strict=True)
    return [place.to_component(leaf) for place, leaf in leaves]


def from_components(structure: Any, tensors: list[Tensor]) -> Any:
    """The elements that ``tensors`` stand for."""
    leaves = []
    for place, tensor in zip(flatten(structure), tensors, strict=True):
        with colocate_with(tensor.op):  # a variant cannot go to another process
            leaves.append(place.from_component(tensor))
    return pack_as(structure, leaves)
