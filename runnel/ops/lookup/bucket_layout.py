"""The arrays in which a dense table of TensorFlow keeps its keys and values.

TensorFlow exports and saves such a table as it is in memory, and takes it over as it is saved: each
key must stand where its hash says, or behind, by quadratic probing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.ops.strings.hashes import hashed, old_hash64

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class BucketLayout:
    """How many buckets a table has, and what marks those that hold no key."""

    empty_key: np.ndarray
    deleted_key: np.ndarray
    initial_buckets: int
    max_load: float

    def arrays(
        self, keys: Sequence[Any], values: Sequence[Any], empty_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The buckets of keys and of values, a row each; ``empty_values`` is one without any."""
        count = self.initial_buckets
        while len(keys) > count * self.max_load:
            count *= 2
        shape = self.empty_key.shape
        in_keys = np.empty((count, *shape), self.empty_key.dtype)
        in_keys[...] = self.empty_key
        in_values = np.empty((count, *empty_values.shape), empty_values.dtype)
        in_values[...] = empty_values
        taken: set[int] = set()
        for key, place, value in zip(keys, _hashes(keys, shape), values, strict=True):
            place, probes = place & (count - 1), 0
            while place in taken:
                probes += 1
                place = (place + probes) & (count - 1)
            taken.add(place)
            in_keys[place] = np.array(key, in_keys.dtype).reshape(shape) if shape else key
            in_values[place] = value
        return in_keys.reshape((count, -1)), in_values.reshape((count, -1))

    def is_key(self, keys: np.ndarray) -> np.ndarray:
        """Which of some buckets hold a key."""
        rows = keys.reshape((len(keys), -1))
        marks = (self.empty_key.reshape(-1), self.deleted_key.reshape(-1))
        return ~np.any([np.all(rows == mark, axis=1) for mark in marks], axis=0)


def _hashes(keys: Sequence[Any], shape: tuple[int, ...]) -> list[int]:
    """What TensorFlow sorts keys by; ``shape`` is that of a key."""
    single = int(np.prod(shape))
    parts = [part for key in keys for part in key] if shape else list(keys)
    if parts and isinstance(parts[0], bytes):
        words = hashed(parts, old_hash64).tolist()
    else:
        words = [int(part) & _MASK for part in parts]
    if single == 1:
        return words
    return [_combined(words[at : at + single]) for at in range(0, len(words), single)]


def _combined(words: list[int]) -> int:
    result = 0
    for word in words:
        result ^= (word + 0x9E3779B97F4A7800 + (result << 10) + (result >> 4)) & _MASK
    return result
