"""Serialized ``tf.train.Example`` messages as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import name_scope
from runnel.graph.registry import register_op
from runnel.graph.shapes import TensorShape
from runnel.ops.parsing.example_values import (
    Column,
    Examples,
    dense_of,
    in_features,
    sparse_of,
    texts,
)
from runnel.ops.parsing.feature_kinds import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    WantedFeatures,
)

TYPES = "{float, int64, string}"

parse_example_op = register_op(
    "ParseExample",
    inputs="serialized: string, names: string, sparse_keys: Nsparse * string, "
    "dense_keys: Ndense * string, dense_defaults: Tdense",
    outputs="sparse_indices: Nsparse * int64, sparse_values: sparse_types, "
    "sparse_shapes: Nsparse * int64, dense_values: Tdense",
    attrs=[
        "Nsparse: int >= 0",
        "Ndense: int >= 0",
        f"sparse_types: list({TYPES}) >= 0",
        f"Tdense: list({TYPES}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    host=True,
    differentiable=False,
)
parse_single_example_op = register_op(
    "ParseSingleExample",
    inputs="serialized: string, dense_defaults: Tdense",
    outputs="sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
    "sparse_shapes: num_sparse * int64, dense_values: Tdense",
    attrs=[
        "num_sparse: int >= 0",
        "sparse_keys: list(string) >= 0",
        "dense_keys: list(string) >= 0",
        f"sparse_types: list({TYPES}) >= 0",
        f"Tdense: list({TYPES}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    host=True,
    differentiable=False,
)


@parse_example_op.shape
def _(serialized, names, sparse_keys, dense_keys, defaults, *, dense_shapes):
    if serialized.dims is not None and len(serialized.dims) != 1:
        raise ValueError(f"serialized must be a vector, not of shape {serialized.shape}")
    batch = None if serialized.dims is None else serialized.dims[0]
    n = len(sparse_keys)
    dense = [(batch, *shape.as_list()) for shape in dense_shapes]
    return [*[(None, 2)] * n, *[(None,)] * n, *[(2,)] * n, *dense]


@parse_single_example_op.shape
def _(serialized, defaults, *, num_sparse, dense_shapes):
    if serialized.dims:
        raise ValueError(f"serialized must be one string, not of shape {serialized.shape}")
    n = num_sparse
    dense = [tuple(shape.as_list()) for shape in dense_shapes]
    return [*[(None, 1)] * n, *[(None,)] * n, *[(1,)] * n, *dense]


def parsed_features(
    column: Callable[[str, DType], Column],
    names: list[str],
    sparse: list[tuple[str, Any]],
    dense: list[tuple[str, Any, TensorShape, Any]],
) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """Sparse features as (indices, values, shape) each, and dense ones."""
    found = [sparse_of(column(key, dtype)) for key, dtype in sparse]
    stacked = [
        dense_of(column(key, dtype), names, key, dtype, shape, np.asarray(default))
        for key, dtype, shape, default in dense
    ]
    return found, stacked


def columns_of(features: list[Any], names: list[str]) -> Callable[[str, DType], Column]:
    """The columns of maps of features."""
    return lambda key, dtype: Column.of_rows(
        [in_features(f, key, dtype, n) for f, n in zip(features, names, strict=True)], dtype
    )


def by_part(sparse: list[list[np.ndarray]]) -> list[np.ndarray]:
    """All indices, then all values, then all shapes."""
    return [found[part] for part in range(3) for found in sparse]


def example_names(names: Any, count: int) -> list[str]:
    """What errors call each example."""
    given = texts(names)
    return given if len(given) == count else ["<unknown>"] * count


@parse_example_op.kernel
def _(
    xp,
    serialized,
    names,
    sparse_keys,
    dense_keys,
    defaults,
    *,
    sparse_types,
    Tdense,  # noqa: N803 (TensorFlow's name)
    dense_shapes,
):
    from runnel.records.example_protos import Example

    contents = np.asarray(serialized, object).tolist()
    called = example_names(names, len(contents))
    sparse_names, dense_names = texts(sparse_keys), texts(dense_keys)
    sparse, dense = parsed_features(
        Examples(Example, contents, called, [*sparse_names, *dense_names]).column,
        called,
        list(zip(sparse_names, sparse_types, strict=True)),
        list(zip(dense_names, Tdense, dense_shapes, defaults, strict=True)),
    )
    return [*by_part(sparse), *dense]


def without_batch(
    sparse: list[list[np.ndarray]], dense: list[np.ndarray]
) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """What was parsed of one example, without the dimension for several."""
    return (
        [[indices[:, 1:], values, shape[1:]] for indices, values, shape in sparse],
        [array[0] for array in dense],
    )


@parse_single_example_op.kernel
def _(
    xp,
    serialized,
    defaults,
    *,
    sparse_keys,
    dense_keys,
    sparse_types,
    Tdense,  # noqa: N803 (TensorFlow's name)
    dense_shapes,
):
    from runnel.records.example_protos import Example

    names, contents = ["<unknown>"], [np.asarray(serialized).item()]
    sparse_names, dense_names = texts(sparse_keys), texts(dense_keys)
    sparse, dense = parsed_features(
        Examples(Example, contents, names, [*sparse_names, *dense_names]).column,
        names,
        list(zip(sparse_names, sparse_types, strict=True)),
        list(zip(dense_names, Tdense, dense_shapes, defaults, strict=True)),
    )
    sparse, dense = without_batch(sparse, dense)
    return [*by_part(sparse), *[np.asarray(array, t.np_dtype) for array, t in zip(dense, Tdense)]]


def parsed_together(contents: list[bytes], defaults: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """What ``ParseSingleExample`` gives for each of ``contents``.

    Lists for the sparse outputs, whose values differ in number; arrays for the dense ones.
    """
    from runnel.records.example_protos import Example

    names = ["<unknown>"] * len(contents)
    sparse_names, dense_names = texts(attrs["sparse_keys"]), texts(attrs["dense_keys"])
    column = Examples(Example, contents, names, [*sparse_names, *dense_names]).column
    sparse: list[list[list[np.ndarray]]] = [[], [], []]
    for key, dtype in zip(sparse_names, attrs["sparse_types"], strict=True):
        found = column(key, dtype)
        sizes = np.maximum(found.counts, 0)
        values = np.split(found.flat, np.cumsum(sizes)[:-1])
        sparse[0].append([np.arange(size)[:, None] for size in sizes.tolist()])
        sparse[1].append(values)
        sparse[2].append([np.array([size]) for size in sizes.tolist()])
    kinds = zip(dense_names, attrs["Tdense"], attrs["dense_shapes"], defaults, strict=True)
    dense = []
    for key, dtype, shape, default in kinds:
        if None in shape.as_list():
            raise ValueError("Sequences are padded to the longest of those that are read together.")
        dense.append(dense_of(column(key, dtype), names, key, dtype, shape, np.asarray(default)))
    return [*sparse[0], *sparse[1], *sparse[2], *dense]


KINDS = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


def _wanted(features: Any) -> WantedFeatures:
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    return WantedFeatures(features, KINDS)


def parse_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a vector of serialized ``Example`` messages, by their keys.

    ``features`` says what each is: a ``VarLenFeature`` or ``SparseFeature`` becomes a sparse
    tensor, a ``FixedLenFeature`` or ``FixedLenSequenceFeature`` a dense one, whose first dimension
    is that of ``serialized``.

    Example:
        >>> tf.parse_example(serialized, {"image": tf.FixedLenFeature([784], tf.float32)})
    """
    wanted = _wanted(features)
    with name_scope(name, "ParseExample", [serialized, example_names]) as scope:
        names = [] if example_names is None else example_names
        *sparse, dense = parse_example_op(
            serialized,
            convert_to_tensor(np.empty(0, object), dtypes.string) if names == [] else names,
            wanted.sparse_keys,
            wanted.dense_keys,
            wanted.dense_defaults(),
            sparse_types=wanted.sparse_types,
            dense_shapes=wanted.dense_shapes,
            name=scope,
        )
        return wanted.result(sparse, dense)


def parse_single_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialized ``Example``, by their keys; see :func:`parse_example`.

    Example:
        >>> tf.parse_single_example(record, {"label": tf.FixedLenFeature([], tf.int64)})
    """
    del example_names  # they name examples in errors; this one is the only one
    wanted = _wanted(features)
    with name_scope(name, "ParseSingleExample", [serialized]) as scope:
        *sparse, dense = parse_single_example_op(
            serialized,
            wanted.dense_defaults(),
            num_sparse=len(wanted.sparse_keys),
            sparse_keys=wanted.sparse_keys,
            dense_keys=wanted.dense_keys,
            sparse_types=wanted.sparse_types,
            dense_shapes=wanted.dense_shapes,
            name=scope,
        )
        return wanted.result(sparse, dense)
