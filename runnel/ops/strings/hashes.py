"""TensorFlow's hashes of strings: FarmHash's fingerprint, SipHash, and its old Hash64.

Native code hashes strings where the package carries it. Elsewhere those of the same length are
hashed together: the formulas are over arrays of 64-bit words that wrap around, one element for each
string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.native.input_library import address, carried_library
from runnel.native.joined_strings import joined_strings

U64 = np.uint64
_K0, _K1, _K2 = U64(0xC3A5C85C97CB3127), U64(0xB492B66FBE98F273), U64(0x9AE16A3B2F90404F)

Words = Any  # an array of uint64, or one


def hashed(
    texts: list[bytes], function: Callable[..., Words], key: tuple[int, int] | None = None
) -> np.ndarray:
    """The hash of each string by ``function`` of this file, under a key if that takes one."""
    library = carried_library()
    if library is None or not texts:
        return hashed_by_length(texts, function, key)
    content, ends = joined_strings(texts)
    out = np.empty(len(texts), U64)
    words = b"".join([(part % 2**64).to_bytes(8, "little") for part in key or (0, 0)])
    library.runnel_hash_strings(
        *(content, address(ends), len(texts), _KINDS[function], words, address(out))
    )
    return out


def hashed_by_length(
    texts: list[bytes], function: Callable[..., Words], key: tuple[int, int] | None = None
) -> np.ndarray:
    """The same without native code: ``function`` of the bytes of strings of one length."""
    out = np.empty(len(texts), U64)
    by_length: dict[int, list[int]] = {}
    for place, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(place)
    with np.errstate(over="ignore"):
        for length, places in by_length.items():
            content = b"".join([texts[place] for place in places])
            rows = np.frombuffer(content, np.uint8).reshape(len(places), length)
            out[places] = function(rows) if key is None else function(rows, key)
    return out


def _word(rows: np.ndarray, at: int, size: int = 8) -> Words:
    """The little-endian number of ``size`` bytes at ``at`` of each row."""
    kind = "<u8" if size == 8 else "<u4"
    part = np.ascontiguousarray(rows[:, at : at + size]).view(kind)[:, 0]
    return part.astype(U64)


def _right(value: Words, bits: int) -> Words:
    """Rotated to the right."""
    return value if not bits else (value >> U64(bits)) | (value << U64(64 - bits))


def _left(value: Words, bits: int) -> Words:
    return _right(value, 64 - bits)


def _mixed(value: Words) -> Words:
    return value ^ (value >> U64(47))


# FarmHash -----------------------------------------------------------------------------------------


def _of_16(low: Words, high: Words, factor: Words) -> Words:
    first = (low ^ high) * factor
    first = first ^ (first >> U64(47))
    second = (high ^ first) * factor
    second = second ^ (second >> U64(47))
    return second * factor


def fingerprint64(rows: np.ndarray) -> Words:
    """FarmHash's ``Fingerprint64`` of each row of bytes."""
    length = rows.shape[1]
    if length <= 16:
        return _upto_16(rows)
    if length <= 32:
        return _upto_32(rows)
    if length <= 64:
        return _upto_64(rows)
    return _longer(rows)


def _upto_16(rows: np.ndarray) -> Words:
    length = rows.shape[1]
    if length >= 8:
        factor = _K2 + U64(length * 2)
        a = _word(rows, 0) + _K2
        b = _word(rows, length - 8)
        c = _right(b, 37) * factor + a
        d = (_right(a, 25) + b) * factor
        return _of_16(c, d, factor)
    if length >= 4:
        factor = _K2 + U64(length * 2)
        a = _word(rows, 0, 4)
        return _of_16(U64(length) + (a << U64(3)), _word(rows, length - 4, 4), factor)
    if length:
        a, b, c = (rows[:, i].astype(U64) for i in (0, length >> 1, length - 1))
        y = a + (b << U64(8))
        z = U64(length) + (c << U64(2))
        return _mixed(y * _K2 ^ z * _K0) * _K2
    return np.full(len(rows), _K2)


def _upto_32(rows: np.ndarray) -> Words:
    length = rows.shape[1]
    factor = _K2 + U64(length * 2)
    a = _word(rows, 0) * _K1
    b = _word(rows, 8)
    c = _word(rows, length - 8) * factor
    d = _word(rows, length - 16) * _K2
    return _of_16(_right(a + b, 43) + _right(c, 30) + d, a + _right(b + _K2, 18) + c, factor)


def _upto_64(rows: np.ndarray) -> Words:
    length = rows.shape[1]
    factor = _K2 + U64(length * 2)
    a = _word(rows, 0) * _K2
    b = _word(rows, 8)
    c = _word(rows, length - 8) * factor
    d = _word(rows, length - 16) * _K2
    y = _right(a + b, 43) + _right(c, 30) + d
    z = _of_16(y, a + _right(b + _K2, 18) + c, factor)
    e = _word(rows, 16) * factor
    f = _word(rows, 24)
    g = (y + _word(rows, length - 32)) * factor
    h = (z + _word(rows, length - 24)) * factor
    return _of_16(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, factor)


def _of_32(rows: np.ndarray, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Two words of 32 bytes and two seeds."""
    w, x, y, z = (_word(rows, at + 8 * i) for i in range(4))
    a = a + w
    b = _right(b + a + z, 21)
    c = a
    a = a + x + y
    b = b + _right(a, 44)
    return a + z, b + c


def _longer(rows: np.ndarray) -> Words:
    length = rows.shape[1]
    seed = U64(81)
    zero = np.zeros(len(rows), U64)
    x: Words = zero + seed
    y: Words = zero + (seed * _K1 + U64(113))
    z: Words = _mixed(y * _K2 + U64(113)) * _K2
    v: tuple[Words, Words] = (zero, zero)
    w: tuple[Words, Words] = (zero, zero)
    x = x * _K2 + _word(rows, 0)
    end = (length - 1) // 64 * 64
    for at in range(0, end, 64):
        x = _right(x + y + v[0] + _word(rows, at + 8), 37) * _K1
        y = _right(y + v[1] + _word(rows, at + 48), 42) * _K1
        x = x ^ w[1]
        y = y + v[0] + _word(rows, at + 40)
        z = _right(z + w[0], 33) * _K1
        v = _of_32(rows, at, v[1] * _K1, x + w[0])
        w = _of_32(rows, at + 32, z + w[1], y + _word(rows, at + 16))
        x, z = z, x
    factor = _K1 + ((z & U64(0xFF)) << U64(1))
    at = length - 64
    w = (w[0] + U64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _right(x + y + v[0] + _word(rows, at + 8), 37) * factor
    y = _right(y + v[1] + _word(rows, at + 48), 42) * factor
    x = x ^ (w[1] * U64(9))
    y = y + v[0] * U64(9) + _word(rows, at + 40)
    z = _right(z + w[0], 33) * factor
    v = _of_32(rows, at, v[1] * factor, x + w[0])
    w = _of_32(rows, at + 32, z + w[1], y + _word(rows, at + 16))
    x, z = z, x
    return _of_16(
        _of_16(v[0], w[0], factor) + _mixed(y) * _K0 + z,
        _of_16(v[1], w[1], factor) + x,
        factor,
    )


# SipHash ------------------------------------------------------------------------------------------


def sip_hash(rows: np.ndarray, key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each row of bytes, under a key of two words."""
    length = rows.shape[1]
    k0, k1 = U64(key[0] % 2**64), U64(key[1] % 2**64)
    zero = np.zeros(len(rows), U64)
    v0: Words = zero + (k0 ^ U64(0x736F6D6570736575))
    v1: Words = zero + (k1 ^ U64(0x646F72616E646F6D))
    v2: Words = zero + (k0 ^ U64(0x6C7967656E657261))
    v3: Words = zero + (k1 ^ U64(0x7465646279746573))
    padded = np.zeros((len(rows), length // 8 * 8 + 8), np.uint8)
    padded[:, :length] = rows
    padded[:, -1] = length & 0xFF
    for at in range(0, padded.shape[1], 8):
        word = _word(padded, at)
        v3 = v3 ^ word
        v0, v1, v2, v3 = _sip_rounds(v0, v1, v2, v3, 2)
        v0 = v0 ^ word
    v0, v1, v2, v3 = _sip_rounds(v0, v1, v2 ^ U64(0xFF), v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


def _sip_rounds(v0: Words, v1: Words, v2: Words, v3: Words, count: int) -> tuple[Words, ...]:
    for _ in range(count):
        v0 = v0 + v1
        v1 = _left(v1, 13) ^ v0
        v0 = _left(v0, 32)
        v2 = v2 + v3
        v3 = _left(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = _left(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = _left(v1, 17) ^ v2
        v2 = _left(v2, 32)
    return v0, v1, v2, v3


# The old one --------------------------------------------------------------------------------------


def old_hash64(rows: np.ndarray) -> Words:
    """TensorFlow's ``Hash64`` of each row of bytes: MurmurHash2 of 64 bits, with its seed."""
    factor, seed = U64(0xC6A4A7935BD1E995), U64(0xDECAFCAFFE)
    length = rows.shape[1]
    value: Words = np.zeros(len(rows), U64) + (seed ^ (U64(length) * factor))
    for at in range(0, length - 7, 8):
        word = _word(rows, at) * factor
        word = (word ^ (word >> U64(47))) * factor
        value = (value ^ word) * factor
    rest = length % 8
    if rest:
        last = np.zeros((len(rows), 8), np.uint8)
        last[:, :rest] = rows[:, length - rest :]
        value = (value ^ _word(last, 0)) * factor
    value = (value ^ (value >> U64(47))) * factor
    return value ^ (value >> U64(47))


_KINDS: dict[Any, int] = {fingerprint64: 0, sip_hash: 1, old_hash64: 2}
"""How native code calls them."""
