"""Tensors as strings (a ``TensorProto`` each), and back; examples that are written as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.checkpoint.varint import varint
from runnel.graph import dtypes
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.serialized_message import require_size, serialized_message
from runnel.graph.shape_inference import scalar, unchanged, unknown
from runnel.graph.tensor_proto import make_ndarray

serialize_tensor_op = register_op(
    "SerializeTensor",
    inputs="tensor: T",
    outputs="serialized: string",
    attrs="T: type",
    host=True,
    differentiable=False,
)
parse_tensor_op = register_op(
    "ParseTensor",
    inputs="serialized: string",
    outputs="output: out_type",
    attrs="out_type: type",
    host=True,
    differentiable=False,
)
decode_json_example_op = register_op(
    "DecodeJSONExample",
    inputs="json_examples: string",
    outputs="binary_examples: string",
    host=True,
    differentiable=False,
)
serialize_tensor_op.shape(scalar)
parse_tensor_op.shape(unknown)
decode_json_example_op.shape(unchanged)


_SMALLER = "Serialize it in slices, or save it in a checkpoint."


def serialized(array: np.ndarray, dtype: Any, raw_strings: bool = False) -> bytes:
    """An array as a serialized ``TensorProto``, its elements as raw bytes.

    Strings stand in a field of theirs unless asked for as raw bytes: all lengths, then all texts.
    """
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    proto = TensorProto(dtype=dtype.as_datatype_enum)
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if dtype is dtypes.string:
        texts = array.reshape(-1).tolist()
        if raw_strings:
            proto.tensor_content = b"".join([*[varint(len(text)) for text in texts], *texts])
        else:
            proto.string_val.extend(texts)
    else:
        require_size(array.nbytes, "A serialized tensor", _SMALLER)
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return serialized_message(proto, "A serialized tensor", _SMALLER)


def parsed(content: bytes, dtype: Any) -> np.ndarray:
    """The array of a serialized ``TensorProto``, which has to be of ``dtype``."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    try:
        proto = TensorProto.FromString(content)
    except DecodeError:
        raise InvalidArgumentError(
            None, None, f"Could not parse `serialized` as TensorProto: {content[:60]!r}"
        ) from None
    if proto.dtype != dtype.as_datatype_enum:
        found = as_dtype(proto.dtype).name if proto.dtype else "none"
        raise InvalidArgumentError(
            None, None, f"Type mismatch between parsed tensor ({found}) and dtype ({dtype.name})"
        )
    try:
        return make_ndarray(proto)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None


@serialize_tensor_op.kernel
def _(xp, tensor, *, T):  # noqa: N803 (TensorFlow's name)
    out = np.empty((), object)
    out[()] = serialized(np.asarray(tensor), T.base_dtype)
    return out


@parse_tensor_op.kernel
def _(xp, text, *, out_type):
    return parsed(np.asarray(text).item(), out_type)


@decode_json_example_op.kernel
def _(xp, texts):
    from google.protobuf import json_format

    from runnel.records.example_protos import Example

    texts = np.asarray(texts, object)
    out = np.empty(texts.shape, object)
    for place in np.ndindex(texts.shape):
        try:
            out[place] = json_format.Parse(texts[place], Example()).SerializeToString()
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                None, None, f"Error while parsing JSON: {error}: {texts[place][:60]!r}"
            ) from None
    return out


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a string, its type and shape included.

    Example:
        >>> text = tf.io.serialize_tensor([1.0, 2.0])
        >>> tf.io.parse_tensor(text, tf.float32)  # [1.0, 2.0]
    """
    return serialize_tensor_op(tensor, name=name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of type ``out_type`` that :func:`serialize_tensor` made a string of."""
    return parse_tensor_op(serialized, out_type=as_dtype(out_type), name=name)


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples that are written as JSON as serialized ``tf.train.Example`` messages."""
    return decode_json_example_op(json_examples, name=name)
