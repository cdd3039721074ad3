"""The messages of running steps: tuples with a fixed layout, since every step sends some.

Rarer messages are an ``Envelope`` of ``protocol/worker.proto``. The values that a message brings
travel beside it, in order.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from google.protobuf.message import DecodeError

from runnel.distributed.protocol.worker_pb2 import Envelope, Failure
from runnel.distributed.wire import Malformed

Keys = tuple[tuple[str, int], ...]
"""The keys under which values are received, and how many of the values under each, in order."""


class RunPart(NamedTuple):
    """A master has a task run a part of a step; what it feeds travels with this."""

    session: int
    part: int
    step: int
    oldest: int
    """All steps of the session with lower numbers are over."""
    trace: bool = False


class Bundle(NamedTuple):
    """Values from one task to another, within a step; of no session for those of groups."""

    session: int
    step: int
    number: int
    """Of the bundle, among those of its sender in the step."""
    keys: Keys


class PartEnded(NamedTuple):
    """A task tells a master that a part has ended; what it fetched travels with this."""

    session: int
    part: int
    step: int
    fetched: int = 0
    """How many of the values were fetched; the others are of ``last``."""
    failure: Failure | None = None
    stats: bytes = b""
    last: Bundle | None = None
    """What the part sent last, if that was for the task of its master."""


Message = RunPart | Bundle | PartEnded | Envelope

_ENVELOPE, _RUN, _BUNDLE, _ENDED = range(4)
_run = struct.Struct("<QIQQ?")
_bundle = struct.Struct("<QQII")
_ended = struct.Struct("<QIQIII?II")
_key = struct.Struct("<II")


def pack(message: Message) -> tuple[int, bytes]:
    """The kind of a message, and its bytes."""
    if isinstance(message, RunPart):
        return _RUN, _run.pack(*message)
    if isinstance(message, PartEnded):
        return _ENDED, _packed_end(message)
    if isinstance(message, Bundle):
        session, step, number, keys = message
        return _BUNDLE, _bundle.pack(session, step, number, len(keys)) + _packed_keys(keys)
    return _ENVELOPE, message.SerializeToString()


def unpack(kind: int, head: bytes, values: int) -> tuple[Message, int]:
    """The message with so many values that ``head`` begins with, and where it ends."""
    try:
        if kind == _RUN:
            return RunPart(*_run.unpack_from(head)), _run.size
        if kind == _ENDED:
            return _unpacked_end(head, values)
        if kind == _BUNDLE:
            session, step, number, count = _bundle.unpack_from(head)
            keys, end = _unpacked_keys(head, _bundle.size, count, values)
            return Bundle(session, step, number, keys), end
        if kind == _ENVELOPE and not values:
            return Envelope.FromString(head), len(head)
    except (struct.error, UnicodeDecodeError, DecodeError) as error:
        raise Malformed(str(error)) from None
    raise Malformed(f"it is of the kind {kind} and has {values} values")


def _packed_end(message: PartEnded) -> bytes:
    session, part, step, fetched, failure, stats, last = message
    failed = b"" if failure is None else failure.SerializeToString()
    number, keys = (0, ()) if last is None else (last.number, last.keys)
    sizes = fetched, len(failed), len(stats), last is not None, number, len(keys)
    return _ended.pack(session, part, step, *sizes) + failed + stats + _packed_keys(keys)


def _unpacked_end(head: bytes, values: int) -> tuple[PartEnded, int]:
    session, part, step, fetched, failed, told, has_last, number, count = _ended.unpack_from(head)
    end = _ended.size + failed
    failure = Failure.FromString(head[_ended.size : end]) if failed else None
    stats = head[end : end + told]
    keys, end = _unpacked_keys(head, end + told, count, values - fetched)
    last = Bundle(session, step, number, keys) if has_last else None
    return PartEnded(session, part, step, fetched, failure, stats, last), end


def _packed_keys(keys: Keys) -> bytes:
    packed = []
    for key, count in keys:
        name = key.encode()
        packed += [_key.pack(count, len(name)), name]
    return b"".join(packed)


def _unpacked_keys(head: bytes, position: int, count: int, values: int) -> tuple[Keys, int]:
    keys = []
    for _ in range(count):
        together, length = _key.unpack_from(head, position)
        begin = position + _key.size
        position = begin + length
        keys.append((head[begin:position].decode(), together))
        values -= max(together, 1)
    if values or position > len(head):
        raise Malformed("it has not as many values as keys for them")
    return tuple(keys), position
