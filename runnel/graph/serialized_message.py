"""Messages as bytes, within the size that protocol buffers allow."""

from __future__ import annotations

from typing import Any

from runnel.graph.tensor_proto import MAX_BYTES


def require_size(size: int, what: str, instead: str) -> None:
    """A ValueError where ``what``, of ``size`` bytes, is larger than a protocol buffer may be."""
    if size > MAX_BYTES:
        raise ValueError(
            f"{what} would have {size} bytes, but a protocol buffer cannot be larger than 2 GiB, "
            f"and no program could read it. {instead}"
        )


def serialized_message(message: Any, what: str, instead: str) -> bytes:
    """The bytes of ``message``; a ValueError tells of ``what`` and advises ``instead`` if too many.

    Some versions of protocol buffers write larger messages, which no version reads.
    """
    from google.protobuf.message import EncodeError

    try:
        content = message.SerializeToString(deterministic=True)
    except EncodeError:
        require_size(message.ByteSize(), what, instead)
        raise
    require_size(len(content), what, instead)
    return content


FEWER_CONSTANTS = "Keep large values in variables, or feed them, rather than in constants."
