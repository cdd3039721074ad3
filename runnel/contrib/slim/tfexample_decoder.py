"""``slim.tfexample_decoder``: items, such as an image and its boxes, of a ``tf.train.Example``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel import image as images
from runnel.contrib.slim.data_decoder import DataDecoder
from runnel.control_flow.conditional import cond
from runnel.control_flow.functional import map_fn
from runnel.graph import dtypes
from runnel.graph.operation import Tensor as GraphTensor
from runnel.graph.sparse_tensor import SparseTensor as GraphSparseTensor
from runnel.ops.array_shape import expand_dims, reshape, size
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, logical_or
from runnel.ops.joining import concat
from runnel.ops.parsing.decode_raw import decode_raw
from runnel.ops.parsing.feature_kinds import FixedLenFeature
from runnel.ops.parsing.parse_example import parse_single_example
from runnel.ops.parsing.parse_sequence_example import parse_single_sequence_example
from runnel.ops.sparse.arranging import sparse_reshape
from runnel.ops.sparse.dense import sparse_tensor_to_dense
from runnel.ops.transposition import transpose

__all__ = [
    "BackupHandler",
    "BoundingBox",
    "Image",
    "ItemHandler",
    "ItemHandlerCallback",
    "LookupTensor",
    "SparseTensor",
    "TFExampleDecoder",
    "TFSequenceExampleDecoder",
    "Tensor",
]


class ItemHandler(ABC):
    """Makes an item of the features that ``keys`` name."""

    def __init__(self, keys: str | Sequence[str]) -> None:
        self._keys: list[str] = [keys] if isinstance(keys, str) else list(keys)

    @property
    def keys(self) -> list[str]:
        """The names of the features that it needs."""
        return self._keys

    @abstractmethod
    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item, a tensor, for parsed features."""


class ItemHandlerCallback(ItemHandler):
    """An item that ``func`` makes of a dictionary of features."""

    def __init__(self, keys: Sequence[str], func: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._func({key: keys_to_tensors[key] for key in self._keys})


class BoundingBox(ItemHandler):
    """Boxes as rows of four numbers, ``ymin``, ``xmin``, ``ymax``, ``xmax``."""

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        keys = ["ymin", "xmin", "ymax", "xmax"] if keys is None else keys
        if len(keys) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(keys)}")
        self._full_keys = [prefix + key for key in keys]
        super().__init__(self._full_keys)

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        sides = []
        for key in self._full_keys:
            side = keys_to_tensors[key]
            side = side.values if isinstance(side, GraphSparseTensor) else side
            sides.append(expand_dims(side, 0))
        return transpose(concat(sides, 0))


class TensorHandler(ItemHandler):
    """A feature, in a given shape or one that other features say."""

    def __init__(
        self,
        tensor_key: str,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = 0,
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        if shape_keys and not isinstance(shape_keys, list | tuple):
            shape_keys = [shape_keys]  # type: ignore[list-item]
        super().__init__([tensor_key, *(shape_keys or ())])
        self._tensor_key = tensor_key
        self._shape_keys = list(shape_keys or ())
        self._shape = shape
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        tensor, shape = keys_to_tensors[self._tensor_key], self._shape
        if self._shape_keys:
            parts = []
            for key in self._shape_keys:
                part = keys_to_tensors[key]
                parts.append(sparse_tensor_to_dense(part) if _is_sparse(part) else part)
            shape = concat([reshape(cast(part, dtypes.int32), [-1]) for part in parts], 0)
        if _is_sparse(tensor):
            if shape is not None:
                tensor = sparse_reshape(tensor, shape)
            tensor = sparse_tensor_to_dense(tensor, self._default_value)
        return tensor if shape is None else reshape(tensor, shape)


class LookupTensor(TensorHandler):
    """A feature whose elements are looked up in a table."""

    def __init__(
        self,
        tensor_key: str,
        table: Any,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = "",
    ) -> None:
        self._table = table
        super().__init__(tensor_key, shape_keys, shape, default_value)

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of ``handler``, or of ``backup`` where that one is empty."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for given in (handler, backup):
            if not isinstance(given, ItemHandler):
                raise ValueError(f"Expected an ItemHandler, but got {given!r}")
        self._handler, self._backup = handler, backup
        super().__init__([*handler.keys, *backup.keys])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        return cond(
            equal(size(item), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


class SparseTensorHandler(ItemHandler):
    """A sparse tensor of two features: indices of a vector, and values."""

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key = indices_key or "indices"
        self._values_key = values_key or "values"
        keys = [self._indices_key, self._values_key]
        super().__init__([*keys, shape_key] if shape_key else keys)
        self._shape_key, self._shape = shape_key, shape
        self._densify, self._default_value = densify, default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        shape = self._shape
        if self._shape_key:
            shape = keys_to_tensors[self._shape_key]
            shape = shape.values if _is_sparse(shape) else shape
        indices = indices.values if _is_sparse(indices) else indices
        values = values.values if _is_sparse(values) else values
        column = expand_dims(cast(reshape(indices, [-1]), dtypes.int64), 1)
        found = GraphSparseTensor(column, reshape(values, [-1]), cast(shape, dtypes.int64))
        return sparse_tensor_to_dense(found, self._default_value) if self._densify else found


class ImageHandler(ItemHandler):
    """An image: decoded by its format, or raw numbers where that is ``raw``."""

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key = image_key or "image/encoded"
        self._format_key = format_key or "image/format"
        super().__init__([self._image_key, self._format_key])
        self._shape, self._channels = shape, channels
        self._dtype = dtypes.as_dtype(dtype)
        self._repeated, self._dct_method = repeated, dct_method

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        content, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return map_fn(lambda one: self._decoded(one, kind), content, dtype=self._dtype)
        return self._decoded(content, kind)

    def _decoded(self, content: GraphTensor, kind: GraphTensor) -> GraphTensor:
        content, kind = reshape(content, []), reshape(kind, [])

        def as_file() -> GraphTensor:
            decoded = images.decode_image(content, self._channels)
            return cast(decoded, self._dtype)

        def as_numbers() -> GraphTensor:
            return decode_raw(content, out_type=self._dtype)

        is_raw = logical_or(equal(kind, "raw"), equal(kind, "RAW"))
        image = cond(is_raw, as_numbers, as_file)
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else reshape(image, self._shape)


class TFExampleDecoder(DataDecoder):
    """Items by name, each made by a handler of the features of an ``Example``.

    Example:
        >>> features = {"image/encoded": tf.FixedLenFeature([], tf.string), ...}
        >>> handlers = {"image": slim.tfexample_decoder.Image()}
        >>> decoder = slim.tfexample_decoder.TFExampleDecoder(features, handlers)
    """

    def __init__(
        self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]
    ) -> None:
        self._keys_to_features = dict(keys_to_features)
        self._items_to_handlers = dict(items_to_handlers)

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of ``items``, in their order; of all, if none are named."""
        parsed = parse_single_example(serialized_example, self._keys_to_features)
        for key in sorted(self._keys_to_features):
            feature = self._keys_to_features[key]
            if isinstance(feature, FixedLenFeature):
                parsed[key] = reshape(parsed[key], feature.shape)
        return _made(self._items_to_handlers, parsed, items)


class TFSequenceExampleDecoder:
    """Items by name, each made by a handler of the features of a ``SequenceExample``."""

    def __init__(
        self,
        keys_to_context_features: Mapping[str, Any],
        keys_to_sequence_features: Mapping[str, Any],
        items_to_handlers: Mapping[str, ItemHandler],
    ) -> None:
        self._context_features = dict(keys_to_context_features)
        self._sequence_features = dict(keys_to_sequence_features)
        self._items_to_handlers = dict(items_to_handlers)
        both = set(self._context_features) & set(self._sequence_features)
        if both:
            raise ValueError(f"Features of the context and of the sequence are both: {both}")

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of ``items``, in their order; of all, if none are named."""
        context, sequence = parse_single_sequence_example(
            serialized_example, self._context_features, self._sequence_features
        )
        return _made(self._items_to_handlers, {**context, **sequence}, items)


def _made(
    handlers: Mapping[str, ItemHandler], parsed: Mapping[str, Any], items: Sequence[str] | None
) -> list[Any]:
    found = []
    for item in items or handlers:
        handler = handlers[item]
        found.append(handler.tensors_to_item({key: parsed[key] for key in handler.keys}))
    return found


def _is_sparse(value: Any) -> bool:
    return isinstance(value, GraphSparseTensor)


Tensor = TensorHandler
SparseTensor = SparseTensorHandler
Image = ImageHandler


def __dir__() -> list[str]:
    return __all__
