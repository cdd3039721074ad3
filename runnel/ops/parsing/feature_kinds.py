"""What a program says of the features that it wants parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import reshape


class VarLenFeature(NamedTuple):
    """A feature with any number of values; parsed into a sparse tensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse tensor whose coordinates and values are features of their own."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenFeature(NamedTuple):
    """A feature of a fixed shape; where it is missing, ``default_value`` unless that is None."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of elements of a fixed shape; parsed into a dense tensor."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class WantedFeatures:
    """What features of a kind of message an operation is asked for."""

    def __init__(self, features: Mapping[str, Any] | None, allowed: tuple[type, ...]) -> None:
        self.features = dict(features or {})
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, Any] = {}
        for key in sorted(self.features):
            feature = self.features[key]
            if not isinstance(feature, allowed):
                names = ", ".join(kind.__name__ for kind in allowed)
                raise ValueError(
                    f"The feature {key!r} is a {type(feature).__name__}, but only {names} can be "
                    "asked for here."
                )
            self._want(key, feature)

    def _want(self, key: str, feature: Any) -> None:
        if not isinstance(feature, SparseFeature) and not feature.dtype:
            raise ValueError(f"Missing type for feature {key}.")
        if isinstance(feature, VarLenFeature):
            self._want_sparse(key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            for index_key in index_keys(feature):
                self._want_sparse(index_key, dtypes.int64)
            self._want_sparse(feature.value_key, feature.dtype)
        else:
            self.dense[key] = feature

    def _want_sparse(self, key: str, dtype: Any) -> None:
        kind = as_dtype(dtype)
        if self.sparse.setdefault(key, kind) is not kind:
            raise ValueError(
                f"The feature {key!r} is asked for as {self.sparse[key].name} and {kind.name}."
            )

    @property
    def sparse_keys(self) -> list[str]:
        return sorted(self.sparse)

    @property
    def sparse_types(self) -> list[DType]:
        return [self.sparse[key] for key in self.sparse_keys]

    @property
    def dense_keys(self) -> list[str]:
        return list(self.dense)

    @property
    def dense_types(self) -> list[DType]:
        return [as_dtype(feature.dtype) for feature in self.dense.values()]

    @property
    def dense_shapes(self) -> list[TensorShape]:
        """The shapes of one example's; the first dimension of a sequence is not known."""
        return [
            TensorShape([None, *TensorShape(feature.shape).as_list()])
            if isinstance(feature, FixedLenSequenceFeature)
            else TensorShape(feature.shape)
            for feature in self.dense.values()
        ]

    def dense_defaults(self) -> list[Tensor]:
        """A tensor for each dense feature: what stands where it is missing; empty if nothing."""
        return [self._default(key, feature) for key, feature in self.dense.items()]

    def _default(self, key: str, feature: Any) -> Tensor:
        dtype = as_dtype(feature.dtype)
        given, name = feature.default_value, f"key_{_word(key)}"
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError(
                    f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True "
                    f"(the feature {key!r})."
                )
            if given is None:
                given = "" if dtype is dtypes.string else 0
            return convert_to_tensor(given, dtype, name=name)
        if given is None:
            return convert_to_tensor(np.empty(0, dtype.np_dtype), dtype)
        shape = TensorShape(feature.shape)
        if not shape.is_fully_defined():
            raise ValueError(
                f"First dimension of shape for feature {key} unknown. Consider using "
                "FixedLenSequenceFeature."
            )
        value = convert_to_tensor(given, dtype, name=name)
        return reshape(value, shape.as_list())

    def result(self, sparse: list[list[Tensor]], dense: list[Tensor]) -> dict[str, Any]:
        """The parsed tensors by the keys that were asked for."""
        from runnel.ops.sparse.merging import sparse_merge

        parts = zip(*sparse, strict=True)
        found: dict[str, Any] = {
            key: SparseTensor(*part) for key, part in zip(self.sparse_keys, parts, strict=True)
        }
        found |= zip(self.dense_keys, dense, strict=True)
        for key, feature in self.features.items():
            if isinstance(feature, SparseFeature):
                ids = [found[index_key] for index_key in index_keys(feature)]
                sizes = feature.size if isinstance(feature.size, list | tuple) else [feature.size]
                found[key] = sparse_merge(
                    ids,
                    found[feature.value_key],
                    list(sizes),
                    already_sorted=feature.already_sorted,
                )
        return {key: found[key] for key in self.features}


def index_keys(feature: SparseFeature) -> list[str]:
    """The names of the features that hold its coordinates."""
    keys = feature.index_key
    return [keys] if isinstance(keys, str) else list(keys)


def _word(key: str) -> str:
    """``key`` as part of the name of an operation."""
    return "".join(c if c.isalnum() and c.isascii() or c in "_.\\-/" else "_" for c in key)
