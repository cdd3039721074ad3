"""Reading serialized examples by native code, whatever their order and lengths."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.native.input_library import address
from runnel.ops.parsing.example_bytes import LIST_TAGS, AnotherType

_KINDS = {dtypes.string: 1, dtypes.float32: 2, dtypes.int64: 4}
"""How the library says which types the values of a feature have: by a sum of these."""
_WORD = 8


class NativeExamples:
    """The wanted features of messages, by their keys, and which messages could be read."""

    def __init__(self, library: ctypes.CDLL, contents: list[bytes], keys: Iterable[str]) -> None:
        self._library, self._content = library, b"".join(contents)
        self._keys = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        texts = [key.encode() for key in self._keys]
        rows, features = len(contents), len(texts)
        self._rows, cells = rows, rows * features
        # All that the library is given and gives, one behind the other.
        sizes = [rows, features, 2 * features, cells, cells, cells]
        bounds = np.cumsum([0, *sizes, -(-(cells + rows) // _WORD)]).tolist()
        words = np.empty(bounds[-1], np.int64)
        words[:rows] = np.cumsum(np.fromiter(map(len, contents), np.int64, rows))
        words[rows : bounds[2]] = np.cumsum([len(text) for text in texts])
        self._words = words
        self._at = at = address(words)
        ends, key_ends, summary, begins, stops, counts, tags, _ = [at + _WORD * b for b in bounds]
        self._places = (begins, stops, counts)
        library.runnel_find_features(
            *(self._content, ends, rows, b"".join(texts), key_ends, features),
            *(begins, stops, counts, tags, tags + cells, summary),
        )
        self._counts = words[bounds[5] : bounds[6]].reshape(features, rows)
        flags = words[bounds[6] :].view(np.uint8)
        self._tags = flags[:cells].reshape(features, rows)
        self.usual: np.ndarray = flags[cells : cells + rows].view(bool)
        """Which messages were read."""
        self._summary = words[bounds[2] : bounds[3]].tolist()

    def column(self, key: str, dtype: DType) -> tuple[Any, np.ndarray]:
        """The values of a feature of all messages, one after the other, and how many each has.

        Where it is missing, or the message was not read, that is -1. Raises ``AnotherType``.
        """
        i = self._keys[key]
        total, kinds = self._summary[2 * i : 2 * i + 2]
        tag, counts = LIST_TAGS[dtype], self._counts[i]
        if kinds & ~_KINDS[dtype]:
            wrong = (self._tags[i] != tag) & (self._tags[i] != 0)
            place = int(np.argmax(wrong))
            raise AnotherType(place, int(self._tags[i][place]))
        if not total:
            return np.empty(0, dtype.np_dtype), counts
        is_string = dtype is dtypes.string
        out = np.empty((total, 2), np.int64) if is_string else np.empty(total, dtype.np_dtype)
        places = [place + _WORD * i * self._rows for place in self._places]
        self._library.runnel_read_values(self._content, *places, self._rows, tag, address(out))
        if not is_string:
            return out, counts
        content = self._content
        return [content[begin:end] for begin, end in out.tolist()], counts
