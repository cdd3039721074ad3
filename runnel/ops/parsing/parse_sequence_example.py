"""Serialized ``tf.train.SequenceExample`` messages as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.registry import register_op
from runnel.graph.shapes import TensorShape
from runnel.ops.parsing.example_values import Values, joined, message, texts, values_of
from runnel.ops.parsing.feature_kinds import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    WantedFeatures,
)
from runnel.ops.parsing.parse_example import (
    TYPES,
    by_part,
    columns_of,
    example_names,
    parsed_features,
    without_batch,
)

_CONTEXT = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense"
)
_LISTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
    "feature_list_sparse_values: feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
    "feature_list_dense_values: feature_list_dense_types"
)
_ATTRS = [
    "Ncontext_sparse: int >= 0 = 0",
    "Ncontext_dense: int >= 0 = 0",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    f"context_sparse_types: list({TYPES}) >= 0 = []",
    f"Tcontext_dense: list({TYPES}) >= 0 = []",
    f"feature_list_dense_types: list({TYPES}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    f"feature_list_sparse_types: list({TYPES}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
]

parse_single_sequence_example_op = register_op(
    "ParseSingleSequenceExample",
    inputs="serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
    "feature_list_sparse_keys: Nfeature_list_sparse * string, "
    "feature_list_dense_keys: Nfeature_list_dense * string, "
    "context_dense_defaults: Tcontext_dense, debug_name: string",
    outputs=f"{_CONTEXT}, {_LISTS}",
    attrs=_ATTRS,
    host=True,
    differentiable=False,
)
parse_sequence_example_op = register_op(
    "ParseSequenceExample",
    inputs="serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
    outputs=f"{_CONTEXT}, {_LISTS}, feature_list_dense_lengths: Nfeature_list_dense * int64",
    attrs=[
        "feature_list_dense_missing_assumed_empty: list(string) >= 0",
        "context_sparse_keys: list(string) >= 0",
        "context_dense_keys: list(string) >= 0",
        "feature_list_sparse_keys: list(string) >= 0",
        "feature_list_dense_keys: list(string) >= 0",
        *_ATTRS,
    ],
    host=True,
    differentiable=False,
)


@parse_single_sequence_example_op.shape
def _(
    serialized,
    missing,
    context_sparse,
    context_dense,
    list_sparse,
    list_dense,
    defaults,
    debug_name,
    *,
    context_dense_shapes,
    feature_list_dense_shapes,
):
    a, b = len(context_sparse), len(list_sparse)
    return [
        *[*[(None, 1)] * a, *[(None,)] * a, *[(1,)] * a],
        *[tuple(shape.as_list()) for shape in context_dense_shapes],
        *[*[(None, 2)] * b, *[(None,)] * b, *[(2,)] * b],
        *[(None, *shape.as_list()) for shape in feature_list_dense_shapes],
    ]


@parse_sequence_example_op.shape
def _(
    serialized,
    debug_name,
    defaults,
    *,
    Ncontext_sparse,  # noqa: N803 (TensorFlow's name)
    Nfeature_list_sparse,  # noqa: N803 (TensorFlow's name)
    context_dense_shapes,
    feature_list_dense_shapes,
):
    a, b = Ncontext_sparse, Nfeature_list_sparse
    batch = None if serialized.dims is None else serialized.dims[0]
    return [
        *[*[(None, 2)] * a, *[(None,)] * a, *[(2,)] * a],
        *[(batch, *shape.as_list()) for shape in context_dense_shapes],
        *[*[(None, 3)] * b, *[(None,)] * b, *[(3,)] * b],
        *[(batch, None, *shape.as_list()) for shape in feature_list_dense_shapes],
        *[(batch,)] * len(feature_list_dense_shapes),
    ]


def _frames(lists: Any, key: str, dtype: DType, name: str) -> list[Values | None] | None:
    """The values of each feature of a list of features; None where there is no such list."""
    if key not in lists:
        return None
    return [values_of(feature, dtype, key, name) for feature in lists[key].feature]


def _sparse_lists(examples: list[list[Values | None] | None], dtype: DType) -> list[np.ndarray]:
    """Lists of features as a sparse tensor: (example, frame, place)."""
    places, parts = [], []
    frames = longest = 0
    for i, example in enumerate(examples):
        frames = max(frames, len(example or ()))
        for j, values in enumerate(example or ()):
            if values is None or not len(values):
                continue
            longest = max(longest, len(values))
            column = np.arange(len(values), dtype=np.int64)
            places.append(np.stack([np.full_like(column, i), np.full_like(column, j), column], 1))
            parts.append(values)
    indices = np.concatenate(places) if places else np.empty((0, 3), np.int64)
    values_in_one = joined(parts, dtype) if parts else np.empty(0, dtype.np_dtype)
    return [indices, values_in_one, np.array([len(examples), frames, longest], np.int64)]


def _dense_lists(
    examples: list[list[Values | None] | None],
    names: list[str],
    key: str,
    dtype: DType,
    shape: TensorShape,
    may_be_missing: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of features as a dense tensor, with their lengths."""
    wanted = shape.num_elements() or 0
    lengths = np.array([len(example or ()) for example in examples], np.int64)
    frames = int(lengths.max(initial=0))
    out = np.zeros((len(examples), frames, wanted), dtype.np_dtype)
    if dtype is dtypes.string:
        out[...] = b""
    for i, (example, name) in enumerate(zip(examples, names, strict=True)):
        if example is None and not may_be_missing:
            raise InvalidArgumentError(
                None,
                None,
                f"Name: {name}, Feature list '{key}' is required but could not be found.  Did you "
                "mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?",
            )
        for j, values in enumerate(example or ()):
            if values is None or len(values) != wanted:
                found = 0 if values is None else len(values)
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Name: {name}, Key: {key}, Index: {j}.  Number of {dtype.name} values != "
                    f"expected.  values size: {found} but output shape: {shape}",
                )
            out[i, j] = joined([values], dtype)
    return out.reshape((len(examples), frames, *[d or 0 for d in shape.as_list()])), lengths


@parse_single_sequence_example_op.kernel
def _(
    xp,
    serialized,
    missing,
    context_sparse,
    context_dense,
    list_sparse,
    list_dense,
    defaults,
    debug_name,
    *,
    context_sparse_types,
    Tcontext_dense,  # noqa: N803 (TensorFlow's name)
    context_dense_shapes,
    feature_list_sparse_types,
    feature_list_dense_types,
    feature_list_dense_shapes,
):
    from runnel.records.example_protos import SequenceExample

    names = [texts(debug_name)[0] or "<unknown>"] if np.size(debug_name) else ["<unknown>"]
    found = message(SequenceExample, np.asarray(serialized).item(), names[0])
    empty = {*texts(missing)}
    sparse, dense = without_batch(
        *parsed_features(
            columns_of([found.context.feature], names),
            names,
            list(zip(texts(context_sparse), context_sparse_types, strict=True)),
            list(
                zip(
                    texts(context_dense),
                    Tcontext_dense,
                    context_dense_shapes,
                    defaults,
                    strict=True,
                )
            ),
        )
    )
    lists = found.feature_lists.feature_list
    sparse_lists, dense_lists = without_batch(
        [
            _sparse_lists([_frames(lists, key, dtype, names[0])], dtype)
            for key, dtype in zip(texts(list_sparse), feature_list_sparse_types, strict=True)
        ],
        [
            _dense_lists(
                [_frames(lists, key, dtype, names[0])], names, key, dtype, shape, key in empty
            )[0]
            for key, dtype, shape in zip(
                texts(list_dense), feature_list_dense_types, feature_list_dense_shapes, strict=True
            )
        ],
    )
    context = [np.asarray(a, t.np_dtype) for a, t in zip(dense, Tcontext_dense, strict=True)]
    return [*by_part(sparse), *context, *by_part(sparse_lists), *dense_lists]


@parse_sequence_example_op.kernel
def _(
    xp,
    serialized,
    debug_name,
    defaults,
    *,
    feature_list_dense_missing_assumed_empty,
    context_sparse_keys,
    context_dense_keys,
    feature_list_sparse_keys,
    feature_list_dense_keys,
    context_sparse_types,
    Tcontext_dense,  # noqa: N803 (TensorFlow's name)
    context_dense_shapes,
    feature_list_sparse_types,
    feature_list_dense_types,
    feature_list_dense_shapes,
):
    from runnel.records.example_protos import SequenceExample

    contents = np.asarray(serialized, object).tolist()
    names = example_names(debug_name, len(contents))
    empty = {*texts(feature_list_dense_missing_assumed_empty)}
    examples = [
        message(SequenceExample, content, name)
        for content, name in zip(contents, names, strict=True)
    ]
    sparse, dense = parsed_features(
        columns_of([example.context.feature for example in examples], names),
        names,
        list(zip(texts(context_sparse_keys), context_sparse_types, strict=True)),
        list(
            zip(
                texts(context_dense_keys),
                Tcontext_dense,
                context_dense_shapes,
                defaults,
                strict=True,
            )
        ),
    )

    def frames(key: str, dtype: DType) -> list[Any]:
        return [
            _frames(example.feature_lists.feature_list, key, dtype, name)
            for example, name in zip(examples, names, strict=True)
        ]

    sparse_lists = [
        _sparse_lists(frames(key, dtype), dtype)
        for key, dtype in zip(
            texts(feature_list_sparse_keys), feature_list_sparse_types, strict=True
        )
    ]
    dense_lists = [
        _dense_lists(frames(key, dtype), names, key, dtype, shape, key in empty)
        for key, dtype, shape in zip(
            texts(feature_list_dense_keys),
            feature_list_dense_types,
            feature_list_dense_shapes,
            strict=True,
        )
    ]
    arrays, lengths = [a for a, _ in dense_lists], [n for _, n in dense_lists]
    return [*by_part(sparse), *dense, *by_part(sparse_lists), *arrays, *lengths]


class _Wanted:
    """What is asked of the context and of the lists of a sequence example."""

    def __init__(self, context_features: Any, sequence_features: Any) -> None:
        if not context_features and not sequence_features:
            raise ValueError("Missing features.")
        self.context = WantedFeatures(
            context_features, (VarLenFeature, SparseFeature, FixedLenFeature)
        )
        self.lists = WantedFeatures(sequence_features, (VarLenFeature, FixedLenSequenceFeature))
        self.empty = []
        self.shapes = []
        for key, feature in self.lists.dense.items():
            if feature.default_value is not None:
                raise ValueError(f"The feature list {key!r} cannot have a default value.")
            if feature.allow_missing:
                self.empty.append(key)
            self.shapes.append(TensorShape(feature.shape))

    @property
    def types_and_shapes(self) -> dict[str, Any]:
        return {
            "context_sparse_types": self.context.sparse_types,
            "context_dense_shapes": self.context.dense_shapes,
            "feature_list_sparse_types": self.lists.sparse_types,
            "feature_list_dense_types": [as_dtype(f.dtype) for f in self.lists.dense.values()],
            "feature_list_dense_shapes": self.shapes,
        }


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The context and the lists of features of one serialized ``SequenceExample``.

    Lists are a ``FixedLenSequenceFeature`` (a dense tensor with a row for each frame) or a
    ``VarLenFeature`` (a sparse one).
    """
    wanted = _Wanted(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]) as scope:
        a, b, c, context_dense, d, e, f, list_dense = parse_single_sequence_example_op(
            serialized,
            np.array(wanted.empty, object),
            wanted.context.sparse_keys,
            wanted.context.dense_keys,
            wanted.lists.sparse_keys,
            wanted.lists.dense_keys,
            wanted.context.dense_defaults(),
            "" if example_name is None else example_name,
            **wanted.types_and_shapes,
            name=scope,
        )
        context = wanted.context.result([a, b, c], context_dense)
        return context, wanted.lists.result([d, e, f], list_dense)


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The contexts and lists of features of several ``SequenceExample`` messages, and the lengths.

    Dense lists are filled up to the longest; the third result has how long each is.
    """
    wanted = _Wanted(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]) as scope:
        a, b, c, context_dense, d, e, f, list_dense, lengths = parse_sequence_example_op(
            serialized,
            np.empty(0, object) if example_names is None else example_names,
            wanted.context.dense_defaults(),
            feature_list_dense_missing_assumed_empty=wanted.empty,
            context_sparse_keys=wanted.context.sparse_keys,
            context_dense_keys=wanted.context.dense_keys,
            feature_list_sparse_keys=wanted.lists.sparse_keys,
            feature_list_dense_keys=wanted.lists.dense_keys,
            Ncontext_sparse=len(wanted.context.sparse_keys),
            Ncontext_dense=len(wanted.context.dense_keys),
            Nfeature_list_sparse=len(wanted.lists.sparse_keys),
            Nfeature_list_dense=len(wanted.lists.dense_keys),
            **wanted.types_and_shapes,
            name=scope,
        )
        context = wanted.context.result([a, b, c], context_dense)
        lists = wanted.lists.result([d, e, f], list_dense)
        return context, lists, dict(zip(wanted.lists.dense_keys, lengths, strict=True))
