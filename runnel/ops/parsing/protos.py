"""``DecodeProtoV2`` and ``EncodeProto``: fields of protocol buffers as tensors, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.parsing.message_fields import decoded, encoded, message_fields

decode_proto_op = register_op(
    "DecodeProtoV2",
    inputs="bytes: string",
    outputs="sizes: int32, values: output_types",
    attrs=[
        "message_type: string",
        "field_names: list(string)",
        "output_types: list(type) >= 0",
        "descriptor_source: string = 'local://'",
        "message_format: string = 'binary'",
        "sanitize: bool = false",
    ],
    host=True,
    differentiable=False,
)
encode_proto_op = register_op(
    "EncodeProto",
    inputs="sizes: int32, values: Tinput_types",
    outputs="bytes: string",
    attrs=[
        "field_names: list(string)",
        "message_type: string",
        "descriptor_source: string = 'local://'",
        "Tinput_types: list(type) >= 1",
    ],
    host=True,
    differentiable=False,
)


class DecodedProto(NamedTuple):
    """How many values each field has, and the values."""

    sizes: Tensor
    values: list[Tensor]


@decode_proto_op.shape
def _(texts, *, field_names, output_types):
    if texts.dims is None:
        return [None] * (1 + len(output_types))
    return [(*texts.dims, len(field_names)), *[(*texts.dims, None) for _ in output_types]]


@encode_proto_op.shape
def _(sizes, values):
    if sizes.dims is None:
        return None
    if not sizes.dims:
        raise ValueError("sizes must have a dimension for the fields; it is a scalar.")
    return sizes.dims[:-1]


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _fields(source: Any, name: Any, fields: Any) -> Any:
    texts = tuple(_bytes(one).decode(errors="replace") for one in (name, *fields))
    return message_fields(_bytes(source), texts[0], texts[1:])


@decode_proto_op.kernel
def _(
    xp,
    texts,
    *,
    message_type,
    field_names,
    output_types,
    descriptor_source,
    message_format,
    sanitize,
):
    how = _bytes(message_format)
    if how not in (b"binary", b"text"):
        raise InvalidArgumentError(None, None, f"format must be binary or text, not {how!r}")
    fields = _fields(descriptor_source, message_type, field_names)
    given = np.asarray(texts, object)
    sizes, values = decoded(given, fields, list(output_types), how == b"text", sanitize)
    return [sizes, *values] if values else sizes


@encode_proto_op.kernel
def _(xp, sizes, values, *, field_names, message_type, descriptor_source, Tinput_types):  # noqa: N803
    fields = _fields(descriptor_source, message_type, field_names)
    return encoded(sizes, [np.asarray(one) for one in values], fields, list(Tinput_types))


def decode_proto(
    bytes: Any,  # noqa: A002 (TensorFlow's name)
    message_type: str,
    field_names: list[str],
    output_types: list[Any],
    descriptor_source: Any = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> Any:
    """Fields of serialized protocol buffers: how many values each has, and the values.

    ``descriptor_source`` describes the messages: a file that ``protoc --include_imports
    --descriptor_set_out`` wrote, ``b"bytes://"`` and the content of one, or ``"local://"`` for
    TensorFlow's own. Values are padded with the field's default; those of inner messages are
    strings, for another ``decode_proto``.

    Example:
        >>> sizes, (features,) = tf.io.decode_proto(
        ...     serialized, "tensorflow.Example", ["features"], [tf.string]
        ... )
    """
    sizes, values = decode_proto_op(
        convert_to_tensor(bytes, dtypes.string),
        message_type=message_type,
        field_names=list(field_names),
        output_types=list(output_types),
        descriptor_source=descriptor_source,
        message_format=message_format,
        sanitize=sanitize,
        name=name,
    )
    return DecodedProto(sizes, values)


def encode_proto(
    sizes: Any,
    values: list[Any],
    field_names: list[str],
    message_type: str,
    descriptor_source: Any = "local://",
    name: str | None = None,
) -> Tensor:
    """Serialized protocol buffers, with ``sizes[..., i]`` values of the field ``i`` each.

    Example:
        >>> tf.io.encode_proto([[1]], [[["text"]]], ["name"], "my.Message", "my.desc")
    """
    return encode_proto_op(
        convert_to_tensor(sizes, dtypes.int32),
        [convert_to_tensor(value) for value in values],
        field_names=list(field_names),
        message_type=message_type,
        descriptor_source=descriptor_source,
        name=name,
    )
