"""Values as bytes, and errors as messages."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from runnel.distributed.protocol.worker_pb2 import Failure
from runnel.graph import dtypes, errors
from runnel.graph.dtypes import DType, as_dtype
from runnel.queues.own_memory import OwnMemory
from runnel.queues.rendezvous import DEAD

ALIGNMENT = 64
MOST_DIMENSIONS = 64
_MOST_ELEMENTS = (1 << 63) // 16 - 1
"""Also of a shape's dimensions that are not 0: NumPy makes no array of more, be it empty."""
_LONGEST_STRING = (1 << 32) - 1

_enums: dict[np.dtype, int] = {}
_types: dict[int, np.dtype] = {}
STRING = dtypes.string.as_datatype_enum


class Malformed(Exception):
    """What came from outside is not a message."""


class Described(NamedTuple):
    """A value on its way, as its description in a message says."""

    dtype: int
    """TensorFlow's number of its type."""
    shape: tuple[int, ...]
    size: int
    """Bytes of its elements, which are in the message's body or in a block of shared memory."""
    block: int = 0
    """The number of the block; 0: in the body."""
    is_dead: bool = False


_description = struct.Struct("<HB?IQ")
"""The type, how many dimensions follow (as int64), whether it is dead, the block, the size."""
_dead = _description.pack(0, 0, True, 0, 0)


def describe(value: Any) -> tuple[bytes, np.ndarray | bytes]:
    """The description of ``value``, and its bytes."""
    if value is DEAD:
        return _dead, b""
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.dtype.kind in "OSU":
        content = _strings(array)
        return _packed(STRING, array.shape, len(content)), content
    description = _packed_array(array.dtype, array.shape)
    if array.nbytes <= 1024:
        return description, array.tobytes()
    return description, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def in_block(description: bytes, block: int) -> bytes:
    """The description of the same value in a block of shared memory."""
    dtype, dimensions, dead, _, size = _description.unpack_from(description)
    packed = _description.pack(dtype, dimensions, dead, block, size)
    return packed + description[_description.size :]


def _packed(dtype: int, shape: tuple[int, ...], size: int) -> bytes:
    dimensions = struct.pack(f"<{len(shape)}q", *shape)
    return _description.pack(dtype, len(shape), False, 0, size) + dimensions


@lru_cache(maxsize=1024)
def _packed_array(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    return _packed(_enum(dtype), shape, prod(shape) * dtype.itemsize)


def read_description(head: bytes, position: int) -> tuple[Described, int]:
    """The description at ``position``, which is found to be right, and where it ends."""
    begin = position + 2
    dimensions = head[begin] if begin < len(head) else 0
    end = position + _description.size + 8 * dimensions
    if end > len(head):
        raise Malformed("it describes fewer values than it has")
    return _checked(head[position:end]), end


@lru_cache(maxsize=1024)
def _checked(description: bytes) -> Described:
    dtype, dimensions, dead, block, size = _description.unpack_from(description)
    shape = struct.unpack_from(f"<{dimensions}q", description, _description.size)
    if dead:
        return Described(0, (), 0, 0, True)
    if not is_shape(shape):
        raise Malformed(f"a value has the shape {list(shape)}")
    count = prod(shape)
    if dtype == STRING:
        if size < 4 * count:
            raise Malformed("there are fewer strings than the shape says")
    elif size != count * _type(dtype).itemsize:
        raise Malformed("a value is not as long as its shape says")
    return Described(dtype, shape, size, block)


def is_shape(shape: Sequence[int]) -> bool:
    """Whether an array may have this shape."""
    if len(shape) > MOST_DIMENSIONS or any(dim < 0 for dim in shape):
        return False
    return prod(max(dim, 1) for dim in shape) <= _MOST_ELEMENTS


def rebuild(described: Described, content: bytes | OwnMemory) -> Any:
    """The value in ``content``."""
    if described.is_dead:
        return DEAD
    shape = described.shape
    if described.dtype == STRING:
        return _parse_strings(bytes(content), shape)
    dtype = _type(described.dtype)
    if isinstance(content, OwnMemory):
        return content.as_array(shape, dtype)
    array = np.frombuffer(content, dtype)
    return array.reshape(shape) if len(shape) != 1 else array


def _enum(dtype: np.dtype) -> int:
    number = _enums.get(dtype)
    if number is None:
        number = _enums[dtype] = as_dtype(dtype).as_datatype_enum
    return number


def _type(number: int) -> np.dtype:
    found = _types.get(number)
    if found is None:
        try:
            found = np.dtype(as_dtype(number).as_numpy_dtype)
        except (TypeError, ValueError):
            raise Malformed(f"a value is of the unknown type {number}") from None
        if found == object:
            raise Malformed(f"a value is of the type {number}, which has no bytes")
        _types[number] = found
    return found


def _strings(array: np.ndarray) -> bytes:
    texts = [t.encode() if isinstance(t, str) else t for t in array.reshape(-1)]
    for text in texts:
        if not isinstance(text, bytes | bytearray | memoryview):
            raise errors.UnimplementedError(
                None,
                None,
                f"A {type(text).__name__} cannot go from one task to another: only the task that "
                "made it knows what it means. Place what uses it on that task",
            )
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_STRING:
        raise errors.ResourceExhaustedError(
            None,
            None,
            f"A string of {longest} bytes cannot go from one task to another: it has to be shorter "
            "than 4 GiB. Split it, or send it as a tensor of tf.uint8",
        )
    lengths = struct.pack(f"<{len(texts)}I", *map(len, texts))
    return b"".join([lengths, *texts])


def _parse_strings(content: bytes, shape: tuple[int, ...]) -> Any:
    count = prod(shape)
    lengths = struct.unpack_from(f"<{count}I", content)
    position = 4 * count
    if position + sum(lengths) != len(content):
        raise Malformed("strings are not as long as they should be")
    found = np.empty(count, object)
    for index, length in enumerate(lengths):
        found[index] = content[position : position + length]
        position += length
    return found.reshape(shape)


# Errors -----------------------------------------------------------------------------------------


class RemoteOperation:
    """The user's operation behind an error on another task, as far as it is known."""

    def __init__(self, name: str, kind: str, site: Sequence[str]) -> None:
        self.name = self.origin = name
        self.type = kind
        self._site = list(site)
        self.inputs: tuple[Any, ...] = ()

    def creation_site(self) -> list[str]:
        """The lines of the user's program that made it."""
        return self._site

    @property
    def node_def(self) -> Any:
        from tensorboard.compat.proto.node_def_pb2 import NodeDef

        return NodeDef(name=self.name, op=self.type)


def failure_of(error: BaseException, task: str, follows: bool = False) -> Failure:
    """``error`` as a message; it happened on ``task`` unless it says another."""
    if isinstance(error, MemoryError):
        error = errors.ResourceExhaustedError(None, None, f"Out of memory: {error}")
    if not isinstance(error, errors.OpError):
        error = errors.InternalError(None, None, f"{type(error).__name__}: {error}")
    failure = Failure(code=error.error_code, message=error.message, task=task, follows=follows)
    failure.task = getattr(error, "task", None) or task
    if error.op is not None:
        failure.op, failure.op_type = error.op.origin, error.op.type
        failure.site.extend(error.op.creation_site())
    return failure


def error_of(failure: Failure, find: Any = None) -> errors.OpError:
    """The error that ``failure`` tells of; ``find(name)`` gives the user's operation, or None."""
    op = find(failure.op) if find is not None and failure.op else None
    if op is None and failure.op:
        op = RemoteOperation(failure.op, failure.op_type, failure.site)
    try:
        kind = errors.exception_type_from_error_code(failure.code)
    except KeyError:  # of a newer version
        kind = errors.UnknownError
    message = failure.message
    if failure.task and failure.task not in message:
        message = f"{message} (on {failure.task})"
    error = kind(None, op, message)
    error.task = failure.task  # type: ignore[attr-defined]
    return error


def enum_of(dtype: DType | None) -> int:
    """A type as a number, 0 for None."""
    return 0 if dtype is None else dtype.as_datatype_enum
