"""Hashes of pairs are those of the formulas, over numbers of 64 bits that Python does not limit."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.ops.strings import feature_crosses

MASK = 2**64 - 1
FACTOR = 0xC6A4A7935BD1E995
RNG = np.random.default_rng(5)
WORDS = np.concatenate(
    [
        np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
        RNG.integers(0, 2**64, 60, np.uint64),
    ]
)


def shifted(value: int) -> int:
    return value ^ (value >> 47)


def joined(first: int, second: int) -> int:
    mixed = first ^ FACTOR
    mixed ^= shifted(second * FACTOR & MASK) * FACTOR & MASK
    mixed = mixed * FACTOR & MASK
    return shifted(shifted(mixed) * FACTOR & MASK)


def stirred(first: int, second: int) -> int:
    """As ``boost::hash_combine``, whose shift to the right keeps the sign."""
    signed = first - (1 << 64) if first >> 63 else first
    return first ^ (second + 0x9E3779B97F4A7800 + (first << 10) + (signed >> 4)) & MASK


@pytest.mark.parametrize(
    ("function", "formula"),
    [(feature_crosses.joined_fingerprints, joined), (feature_crosses.stirred_hashes, stirred)],
)
def test_pairs_of_hashes(function, formula):
    second = WORDS[::-1].copy()
    expected = [formula(a, b) for a, b in zip(WORDS.tolist(), second.tolist(), strict=True)]
    assert function(WORDS, second).tolist() == expected
