"""Many strings as native code takes them: one behind the other, and where each ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def joined_strings(texts: Sequence[bytes]) -> tuple[bytes, np.ndarray]:
    """The bytes of all strings, and the place behind each.

    Example:
        >>> joined_strings([b"one", b"", b"two"])  # b"onetwo" and [3, 3, 6]
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return b"".join(texts), lengths.cumsum()
