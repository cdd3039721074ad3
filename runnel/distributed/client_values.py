"""Values and errors in the clients' protocol."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from runnel.distributed import wire
from runnel.distributed.protocol import client_pb2
from runnel.distributed.protocol.worker_pb2 import Failure as WorkerFailure
from runnel.graph import dtypes, errors
from runnel.graph.dtypes import as_dtype

FAILURE = "runnel-failure-bin"
"""The metadata that carry a failure."""
MOST_METADATA = 1 << 16
"""The bytes of metadata that a client must be ready to take."""
_MOST_BYTES = (1 << 31) - (1 << 20)  # what protocol buffers allow, less what describes the values
_LENGTH_BYTES = 2  # a string's tag and length, at least
_MOST_MESSAGE = 1 << 14
_MOST_LINES = 16


def to_message(value: Any, message: Any) -> None:
    """Writes ``value`` into a ``Tensor``."""
    array = np.asarray(value)
    dtype = as_dtype(array.dtype)
    message.dtype = dtype.as_datatype_enum
    message.shape.extend(array.shape)
    if dtype is dtypes.string:
        message.strings.extend(
            t.encode() if isinstance(t, str) else bytes(t) for t in array.reshape(-1)
        )
    else:
        message.content = np.ascontiguousarray(array).tobytes()


def require_one_message(values: Iterable[Any]) -> None:
    """An error when ``values`` are too large to be sent together."""
    total = sum(_size(np.asarray(value)) for value in values)
    if total >= _MOST_BYTES:
        raise errors.ResourceExhaustedError(
            None,
            None,
            f"The values of one call take {total} bytes, but a message of a client's session holds "
            "less than 2 GiB. Keep large values in variables, or feed and fetch them in slices",
        )


def _size(array: Any) -> int:
    """The bytes of an array in a message, about."""
    if array.dtype.kind != "O":
        return int(array.nbytes)
    texts = [t.encode() if isinstance(t, str) else t for t in array.reshape(-1)]
    return sum(_LENGTH_BYTES + len(text) for text in texts if hasattr(text, "__len__"))


def from_message(message: Any) -> Any:
    """The value in a ``Tensor``; an error where it is not one."""
    shape = tuple(message.shape)
    try:
        dtype = as_dtype(message.dtype)
    except TypeError:
        raise _invalid(f"a value is of the unknown type {message.dtype}") from None
    if not wire.is_shape(shape):
        raise _invalid(f"a value has the shape {list(shape)}")
    if dtype is dtypes.string:
        if len(message.strings) != prod(shape):
            raise _invalid(f"there are {len(message.strings)} strings for the shape {list(shape)}")
        found = np.empty(len(message.strings), object)
        found[:] = list(message.strings)
        return found.reshape(shape)
    storage = np.dtype(dtype.as_numpy_dtype)
    if storage == object or len(message.content) != prod(shape) * storage.itemsize:
        raise _invalid(f"a value of shape {list(shape)} has {len(message.content)} bytes")
    return np.frombuffer(message.content, storage).reshape(shape)


def _invalid(what: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"A message is malformed: {what}")


def failure_bytes(error: BaseException, task: str) -> tuple[int, str, bytes]:
    """The code, the text and the whole of an error, cut to what metadata can hold."""
    failure = wire.failure_of(error, task)
    failure.message = _cut(failure.message, _MOST_MESSAGE)
    site = [_cut(line, _MOST_MESSAGE // _MOST_LINES) for line in failure.site[-_MOST_LINES:]]
    failure.site[:] = site
    # The fields that both protocols have are numbered alike.
    whole = client_pb2.Failure.FromString(failure.SerializeToString())
    whole.DiscardUnknownFields()
    return failure.code, failure.message, whole.SerializeToString()


def _cut(text: str, most: int) -> str:
    """``text``, or its beginning where it takes more than ``most`` bytes."""
    content = text.encode()
    if len(content) <= most:
        return text
    return f"{content[:most].decode(errors='ignore')} ... ({len(content)} bytes in all)"


def error_from(content: bytes, find: Any) -> errors.OpError:
    """The error that :func:`failure_bytes` has written."""
    return wire.error_of(WorkerFailure.FromString(content), find)
