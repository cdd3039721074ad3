"""How a message begins, and how it is put together for writing."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

from runnel.distributed.transport.stream import Buffers
from runnel.distributed.wire import ALIGNMENT

MAGIC = b"RNL2"
HEADER = struct.Struct("<4sIIIIQ")
"""The magic, the message's kind, how many values it has, how many blocks it gives back, and the
lengths of its head (the message, the values' descriptions, the blocks) and body (the values)."""
_SMALL = 1 << 12
_ZEROS = bytes(ALIGNMENT)


def framed(
    kind: int, values: int, freed: int, head: Sequence[bytes], contents: Sequence[Any]
) -> Buffers:
    """A message as it is written; what is small is put together."""
    sizes = [len(content) + -len(content) % ALIGNMENT for content in contents]
    header = HEADER.pack(MAGIC, kind, values, freed, sum(map(len, head)), sum(sizes))
    small = [header, *head]
    buffers: list[Any] = []
    for content, size in zip(contents, sizes, strict=True):
        if len(content) > _SMALL:
            buffers += [b"".join(small), content]
            small = []
        else:
            small.append(bytes(content))
        small.append(_ZEROS[: size - len(content)])
    buffers.append(b"".join(small))
    return deque(filter(len, buffers))
