"""Fields of protocol buffers, by a description of their messages that the program gives.

Messages are described by a ``FileDescriptorSet``: a file of one, its bytes, or what TensorFlow
itself has (``local://``). Only the fields that are asked for are read: by a message of our own that
has these alone, strings and inner messages as the bytes that they are.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel import gfile
from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import DataLossError, InvalidArgumentError, OpError
from runnel.graph.permitted_files import permitted

_BYTES = b"bytes://"
_LOCAL = (b"", b"local://")
_PACKAGES = ("runnel.example.", "tensorboard.")
"""Where TensorFlow's own messages are here."""

# By the numbers that a FieldDescriptorProto has for types.
_DOUBLE, _FLOAT, _INT64, _UINT64, _INT32, _FIXED64, _FIXED32, _BOOL = range(1, 9)
_STRING, _GROUP, _MESSAGE, _AS_BYTES, _UINT32, _ENUM, _SFIXED32, _SFIXED64 = range(9, 17)
_SINT32, _SINT64 = 17, 18
_WIDE, _SIGNED = (dtypes.int64,), (dtypes.int32, dtypes.int64)
_UNSIGNED = (dtypes.uint32, dtypes.uint64)
_TYPES: dict[int, tuple[DType, ...]] = {
    _DOUBLE: (dtypes.float64,),
    _FLOAT: (dtypes.float32, dtypes.float64),
    _INT64: _WIDE,
    _SINT64: _WIDE,
    _SFIXED64: _WIDE,
    _UINT64: (dtypes.uint64,),
    _FIXED64: (dtypes.uint64,),
    _INT32: _SIGNED,
    _SINT32: _SIGNED,
    _SFIXED32: _SIGNED,
    _UINT32: _UNSIGNED,
    _FIXED32: _UNSIGNED,
    _BOOL: (dtypes.bool_,),
    _ENUM: (dtypes.int32,),
    _STRING: (dtypes.string,),
    _AS_BYTES: (dtypes.string,),
    _MESSAGE: (dtypes.string,),
}
"""The types of tensors that may hold a field."""
_PLAIN = {_ENUM: _INT32, _STRING: _AS_BYTES, _MESSAGE: _AS_BYTES}
"""The type of a field in a message of ours, where it is another."""
_REPEATED, _OPTIONAL = 3, 1


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


@dataclass(frozen=True, slots=True)
class MessageFields:
    """Some fields of a message."""

    whole: Any
    """The class of the message, with all its fields."""
    fields: tuple[Any, ...]
    """Their descriptors."""
    reading: Any
    """The class of a message that has these alone, each as it is."""
    writing: Any
    """The same, each a list."""

    def require_types(self, types: list[DType]) -> None:
        """An error unless the fields can be in tensors of ``types``."""
        if len(types) != len(self.fields):
            raise _invalid(f"There are {len(self.fields)} field names and {len(types)} types.")
        for field, dtype in zip(self.fields, types, strict=True):
            fitting = _TYPES.get(field.type, ())
            if dtype not in fitting:
                names = " or ".join(one.name for one in fitting) or "no type of tensors"
                raise _invalid(f"The field {field.full_name} can be {names}, not {dtype.name}.")


@functools.lru_cache(maxsize=64)
def message_fields(source: bytes, name: str, fields: tuple[str, ...]) -> MessageFields:
    """Fields of the message ``name`` that ``source`` describes."""
    from google.protobuf import message_factory

    descriptor = _described(source, name)
    found = []
    for field in fields:
        one = descriptor.fields_by_name.get(field)
        if one is None:
            one = _extension(descriptor, field)
        found.append(one)
    return MessageFields(
        message_factory.GetMessageClass(descriptor),
        tuple(found),
        _class_of(found, lists=False),
        _class_of(found, lists=True),
    )


def _extension(descriptor: Any, name: str) -> Any:
    try:
        found = descriptor.file.pool.FindExtensionByName(name)
    except KeyError:
        found = None
    if found is None or found.containing_type is not descriptor:
        names = ", ".join(sorted(descriptor.fields_by_name)[:20])
        raise _invalid(
            f"The message {descriptor.full_name} has no field {name!r}; it has {names or 'none'}."
        )
    return found


def _described(source: bytes, name: str) -> Any:
    """The descriptor of a message."""
    if source in _LOCAL:
        pool = _local_pool()
        names = [name.replace("tensorflow.", ours, 1) for ours in _PACKAGES]
    else:
        pool, names = _pool_of(_descriptions(source)), [name]
    for known in names:
        try:
            return pool.FindMessageTypeByName(known)
        except KeyError:
            continue
    where = "among TensorFlow's own messages" if source in _LOCAL else "in the descriptor_source"
    raise _invalid(f"No descriptor found for message type {name!r} {where}.")


def _local_pool() -> Any:
    """TensorFlow's messages, those of examples in a package of ours, others in TensorBoard's."""
    from google.protobuf import descriptor_pool
    from tensorboard.compat.proto import event_pb2, meta_graph_pb2  # noqa: F401 (fill the pool)

    from runnel.records import example_protos  # noqa: F401 (likewise)

    return descriptor_pool.Default()


def _descriptions(source: bytes) -> bytes:
    """The serialized ``FileDescriptorSet`` that a source stands for."""
    if source.startswith(_BYTES):
        return source.removeprefix(_BYTES)
    path = permitted(source.decode(errors="surrogateescape"))
    try:
        with gfile.GFile(path, "rb") as file:
            return bytes(file.read())
    except OpError as error:
        raise _invalid(f"The descriptor_source {path!r} cannot be read: {error.message}") from None


def _pool_of(content: bytes) -> Any:
    """The messages that a serialized ``FileDescriptorSet`` describes."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
            pool.AddSerializedFile(file.SerializeToString())
    except (DecodeError, TypeError, KeyError, ValueError) as error:
        raise _invalid(
            f"The descriptor_source is no FileDescriptorSet with all that it uses: {error}. "
            "`protoc --include_imports --descriptor_set_out=FILE` writes one."
        ) from None
    return pool


def _class_of(fields: list[Any], lists: bool) -> Any:
    """The class of a message that has these fields alone."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="fields.proto", syntax="proto2")
    message = file.message_type.add(name="Fields")
    for field in {field.number: field for field in fields}.values():
        made = message.field.add(name=_name(field), number=field.number)
        made.type = _PLAIN.get(field.type, field.type)
        made.label = _REPEATED if lists or field.is_repeated else _OPTIONAL
        made.options.packed = bool(field.is_packed)
        if field.type == _GROUP:
            raise _invalid(f"The field {field.full_name} is a group: groups cannot be read.")
    pool = descriptor_pool.DescriptorPool()
    try:
        pool.AddSerializedFile(file.SerializeToString())
        return message_factory.GetMessageClass(pool.FindMessageTypeByName("Fields"))
    except (TypeError, KeyError, ValueError) as error:
        raise _invalid(f"The descriptions of the fields contradict each other: {error}") from None


def _name(field: Any) -> str:
    return f"field_{field.number}"


# Reading ------------------------------------------------------------------------------------------


def decoded(
    texts: np.ndarray,
    fields: MessageFields,
    types: list[DType],
    text_format: bool,
    sanitize: bool,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """How many values each field of each message has, and the values, padded with the default."""
    fields.require_types(types)
    messages = [_parsed(text, fields, text_format, sanitize) for text in texts.reshape(-1)]
    lists = [[_values(message, field) for message in messages] for field in fields.fields]
    counts = np.array([[len(one) for one in column] for column in lists], np.int32)
    sizes = counts.reshape(len(lists), len(messages)).T.reshape(*texts.shape, len(lists))
    columns = []
    for field, column, dtype in zip(fields.fields, lists, types, strict=True):
        longest = max((len(one) for one in column), default=0) if field.is_repeated else 1
        values = np.full((len(messages), longest), _default(field), dtype.np_dtype)
        for row, one in enumerate(column):
            values[row, : len(one)] = one
        columns.append(values.reshape(*texts.shape, longest))
    return np.ascontiguousarray(sizes), columns


def _parsed(text: bytes, fields: MessageFields, text_format: bool, sanitize: bool) -> Any:
    from google.protobuf import text_format as text_parser
    from google.protobuf.message import DecodeError, EncodeError

    try:
        if text_format:
            whole = fields.whole()
            text_parser.Parse(text, whole, descriptor_pool=whole.DESCRIPTOR.file.pool)
            text = whole.SerializePartialToString()
        elif sanitize:
            text = fields.whole.FromString(text).SerializePartialToString()
        return fields.reading.FromString(text)
    except (DecodeError, EncodeError, text_parser.ParseError, UnicodeDecodeError) as error:
        name = fields.whole.DESCRIPTOR.full_name
        raise DataLossError(
            None, None, f"Unable to parse a message {name} of {len(text)} bytes: {error}"
        ) from None


def _values(message: Any, field: Any) -> Any:
    name = _name(field)
    if field.is_repeated:
        return getattr(message, name)
    return [getattr(message, name)] if message.HasField(name) else []


def _default(field: Any) -> Any:
    """What stands where a message has no value."""
    if field.type == _MESSAGE or (field.type in (_STRING, _AS_BYTES) and field.is_repeated):
        return b""
    if field.is_repeated:
        return 0
    default = field.default_value
    return default.encode() if isinstance(default, str) else default


# Writing ------------------------------------------------------------------------------------------


def encoded(
    sizes: np.ndarray, values: list[np.ndarray], fields: MessageFields, types: list[DType]
) -> np.ndarray:
    """Messages with as many values of each field as ``sizes`` says."""
    fields.require_types(types)
    shape = sizes.shape[:-1]
    if sizes.shape[-1] != len(values):
        raise _invalid(f"sizes has the shape {list(sizes.shape)} for {len(values)} fields.")
    counts = sizes.reshape(-1, len(values))
    rows = [one.reshape(-1, one.shape[-1] if one.ndim else 1) for one in values]
    for n, (field, value) in enumerate(zip(fields.fields, values, strict=True)):
        if value.shape[:-1] != shape:
            raise _invalid(
                f"The values of {field.full_name} have the shape {list(value.shape)}; the first "
                f"dimensions must be those of sizes: {list(sizes.shape)}."
            )
        if counts[:, n].max(initial=0) > value.shape[-1]:
            raise _invalid(
                f"Size value {counts[:, n].max()} of {field.full_name} is larger than the last "
                f"dimension of its values: {list(value.shape)}."
            )
    made = np.empty(len(counts), object)
    for row, wanted in enumerate(counts.tolist()):
        message = fields.writing()
        for field, column, count in zip(fields.fields, rows, wanted, strict=True):
            _extend(getattr(message, _name(field)), column[row, : max(count, 0)].tolist(), field)
        made[row] = message.SerializeToString()
    return made.reshape(shape)


def _extend(target: Any, values: list[Any], field: Any) -> None:
    try:
        target.extend(values)
    except (ValueError, TypeError) as error:
        raise _invalid(f"{field.full_name} cannot have such a value: {error}") from None
