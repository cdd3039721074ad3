"""Hashes are the same from native code and from formulas over arrays, for strings of any length."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.native.input_library import carried_library
from runnel.ops.strings import hashes

RNG = np.random.default_rng(2)
TEXTS = [RNG.bytes(length) for length in [*range(260), *RNG.integers(0, 260, 200), 1000, 65_536]]
HASHES = {
    "fingerprint": (hashes.fingerprint64, None),
    "siphash": (hashes.sip_hash, (3, -4)),
    "old": (hashes.old_hash64, None),
}


@pytest.mark.skipif(carried_library() is None, reason="the package carries no native code")
@pytest.mark.parametrize("name", HASHES)
def test_native_hashes_are_those_of_the_formulas(name):
    function, key = HASHES[name]
    expected = hashes.hashed_by_length(TEXTS, function, key)
    np.testing.assert_array_equal(hashes.hashed(TEXTS, function, key), expected)


@pytest.mark.parametrize("name", HASHES)
def test_of_no_string_there_is_no_hash(name):
    function, key = HASHES[name]
    assert hashes.hashed([], function, key).shape == (0,)
