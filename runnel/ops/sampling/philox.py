"""The random bits of TensorFlow's CPU kernels: Philox4x32-10 and the position of an op's stream.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) is a keyed bijection
from a 128-bit counter to four 32-bit words. It has no state but the position of the counter, so
every element of an output is computed independently of the others, and a step is repeated by
repeating its position.

On the host, a :class:`PhiloxStream` is the position of one random op; the runtime holds one for
each op of a session and replaces it after every execution. In the kernels that position is
``stream``, six uint32 words: the key, then the counter, low words first. A traced stream is an
argument of the compiled code, so moving on never recompiles.

Everything that takes an array namespace ``xp`` runs under NumPy at once, and under ``jax.numpy``
while it is traced (with 64-bit types, ``jax.enable_x64(True)``), and gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.native.input_library import address, carried_library

Array = Any  # a numpy.ndarray, a jax.Array or a tracer
Words = tuple[Array, Array, Array, Array]

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK32 = 0xFFFF_FFFF
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF
_MASK128 = (1 << 128) - 1

STREAM_WORDS = 6
RESERVED_PER_OUTPUT = 256  # counters that TensorFlow sets aside for each output element

# NumPy only. Up to _FEW_COUNTERS, Python's integers beat the overhead of some sixty ufunc calls;
# beyond BLOCK_COUNTERS, blocks keep the temporaries in the second-level cache.
_FEW_COUNTERS = 12
BLOCK_COUNTERS = 8192


@dataclass(frozen=True, slots=True)
class PhiloxStream:
    """The position of one random op: a 64-bit key and a 128-bit counter.

    Immutable: :meth:`skip` returns the position after an execution.

    >>> start = PhiloxStream.from_seeds(seed=87654321, seed2=42)
    >>> start.words().tolist()
    [87654321, 0, 0, 0, 42, 0]
    >>> after = start.skip(reserved_for_outputs(6))
    >>> after.counter - start.counter
    1536
    """

    key: int
    counter: int

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> PhiloxStream:
        """The first position of an op with these ``seed`` and ``seed2`` attributes.

        Negative seeds count as their two's complement in 64 bits. Both seeds zero asks TensorFlow
        for a random stream; here it is a stream like any other, and the caller draws the seeds.
        """
        return cls(key=seed & _MASK64, counter=(seed2 & _MASK64) << 64)

    def skip(self, count: int) -> PhiloxStream:
        """The position ``count`` counters further, wrapping at 128 bits."""
        return PhiloxStream(self.key, (self.counter + count) & _MASK128)

    def words(self) -> np.ndarray:
        """The six uint32 words that the kernels take as ``stream``."""
        return np.frombuffer((self.key | self.counter << 64).to_bytes(24, "little"), np.uint32)


def stream_rows(stream: PhiloxStream, step: int, count: int) -> np.ndarray | None:
    """The words of ``stream`` at ``count`` positions, ``step`` counters apart: a row for each.

    None where the lowest 64 bits of the counter would overflow between them.
    """
    low = stream.counter & _MASK64
    if low + step * count > _MASK64:
        return None
    rows = np.empty((count, STREAM_WORDS), np.uint32)
    rows[:] = stream.words()
    rows[:, 2:4] = (np.arange(count, dtype=np.uint64) * step + low).view(np.uint32).reshape(-1, 2)
    return rows


def moved_words(stream: np.ndarray, count: int) -> np.ndarray:
    """``stream``, six words, ``count`` counters further."""
    position = int.from_bytes(stream.tobytes(), "little")
    return PhiloxStream(position & _MASK64, position >> 64).skip(count).words()


def reserved_for_outputs(output_count: int) -> int:
    """Counters by which one execution of a uniform or normal op advances its stream."""
    return output_count * RESERVED_PER_OUTPUT


def reserved_for_shuffle(size: int) -> int:
    """Counters by which one shuffle of ``size`` rows (none of them empty) advances its stream."""
    return (size + 2) // 4 if size > 1 else 0


def reserved_for_multinomial(batch_size: int, num_samples: int) -> int:
    """Counters by which one execution of ``Multinomial`` advances its stream."""
    return batch_size * (-(-num_samples // 4) * 4) * 2 * RESERVED_PER_OUTPUT


def philox4x32(xp: Any, key: tuple[Array, Array], counter: Words) -> Words:
    """Encrypts counters: four uint32 words for each position of the broadcast inputs.

    ``key`` and ``counter`` are uint32 arrays of rank one, low words first.

    >>> zero = np.zeros(1, np.uint32)
    >>> [hex(w[0]) for w in philox4x32(np, (zero, zero), (zero, zero, zero, zero))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    if xp is np:
        return _philox_numpy(key, counter)
    return _philox_traced(xp, key, counter)


def _philox_int(key: int, counter: int) -> tuple[int, int, int, int]:
    """Encrypts one 128-bit counter with Python's integers."""
    m0, m1 = _MULTIPLIERS
    s0, s1 = _KEY_STEPS
    k0, k1 = key & _MASK32, key >> 32
    c0, c1, c2, c3 = (counter >> shift & _MASK32 for shift in (0, 32, 64, 96))
    for _ in range(_ROUNDS):
        p0 = c0 * m0
        p1 = c2 * m1
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK32
        k0 = (k0 + s0) & _MASK32
        k1 = (k1 + s1) & _MASK32
    return c0, c1, c2, c3


def _philox_numpy(key: tuple[Array, Array], counter: Words) -> Words:
    # The words (0, 2) that are multiplied and the words (3, 1) that are not are the two rows of
    # one array each, held in 64 bits: half the ufunc calls, and no conversion inside a round.
    size = np.broadcast_shapes(*(np.shape(word) for word in counter))[0]
    even: Array = np.empty((2, size), np.uint64)
    odd: Array = np.empty((2, size), np.uint64)
    even[0], odd[1], even[1], odd[0] = counter
    round_key: Array = np.array((key[1], key[0]), np.uint64)
    multipliers = np.array(_MULTIPLIERS, np.uint64)[:, None]
    key_steps = np.array(_KEY_STEPS[::-1], np.uint64)[:, None]
    for _ in range(_ROUNDS):
        product = even * multipliers
        high = product >> 32
        high ^= odd
        high ^= round_key
        product &= _MASK32
        even, odd = high[::-1], product
        round_key = (round_key + key_steps) & _MASK32
    even, odd = even.astype(np.uint32), odd.astype(np.uint32)
    return even[0], odd[1], even[1], odd[0]


def _philox_traced(xp: Any, key: tuple[Array, Array], counter: Words) -> Words:
    from jax import lax

    def one_round(_: Any, state: tuple[Words, tuple[Array, Array]]) -> Any:
        (c0, c1, c2, c3), (k0, k1) = state
        p0 = c0.astype(np.uint64) * np.uint64(_MULTIPLIERS[0])
        p1 = c2.astype(np.uint64) * np.uint64(_MULTIPLIERS[1])
        high0, high1 = ((p >> np.uint64(32)).astype(np.uint32) for p in (p0, p1))
        words = high1 ^ c1 ^ k0, p1.astype(np.uint32), high0 ^ c3 ^ k1, p0.astype(np.uint32)
        return words, (k0 + np.uint32(_KEY_STEPS[0]), k1 + np.uint32(_KEY_STEPS[1]))

    def rolled(words: Words, key: tuple[Array, Array]) -> Words:
        return lax.fori_loop(0, _ROUNDS, one_round, (words, key))[0]

    def unrolled(words: Words, key: tuple[Array, Array]) -> Words:
        state = words, key
        for index in range(_ROUNDS):
            state = one_round(index, state)
        return state[0]

    # XLA's CPU compiler (seen in jaxlib 0.10) fuses an unrolled generator into each of its users,
    # once for every one of the four words, and runs it ten times slower than the loop.
    words = tuple(xp.broadcast_arrays(*counter))
    return lax.platform_dependent(words, tuple(key), cpu=rolled, default=unrolled)


def words_at(xp: Any, stream: Array, offsets: Array) -> Words:
    """The four words at each of the uint64 ``offsets`` from the stream's position."""
    if xp is np and offsets.size <= _FEW_COUNTERS:
        k0, k1, *counter = stream.tolist()
        start = sum(word << 32 * place for place, word in enumerate(counter))
        blocks = [_philox_int(k0 | k1 << 32, (start + at) & _MASK128) for at in offsets.tolist()]
        table = np.array(blocks, np.uint32).reshape(-1, 4)
        return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
    if xp is np and (library := carried_library()) is not None:
        return _words_natively(library, stream, offsets)
    k0, k1, c0, c1, c2, c3 = (stream[i : i + 1] for i in range(6))
    start = c0.astype(np.uint64) | c1.astype(np.uint64) << np.uint64(32)
    low = start + offsets
    carry = (low < start).astype(np.uint32)
    c2 = c2 + carry
    c3 = c3 + (c2 < carry).astype(np.uint32)
    c0, c1 = low.astype(np.uint32), (low >> np.uint64(32)).astype(np.uint32)
    return philox4x32(xp, (k0, k1), (c0, c1, c2, c3))


def _words_natively(library: Any, stream: np.ndarray, offsets: np.ndarray) -> Words:
    places: np.ndarray = np.ascontiguousarray(offsets, np.uint64)
    words: np.ndarray = np.empty((4, places.size), np.uint32)
    library.runnel_philox(stream.tobytes(), places.ctypes.data, places.size, address(words))
    return words[0], words[1], words[2], words[3]


def fill_groups(
    xp: Any,
    stream: Array,
    shape: Sequence[int],
    group_size: int,
    draw: Callable[[Words], Array],
) -> Array:
    """An array of ``shape`` in which each counter gives the next ``group_size`` elements.

    ``draw`` maps the words at some counters to a matrix with a row of elements for each. Under
    NumPy there may be several streams, the rows of ``stream``: then there is an array for each.
    """
    count = math.prod(shape)
    groups = -(-count // group_size)
    if xp is np and stream.ndim == 2:
        return _fill_rows(stream, shape, groups, draw)

    def rows(start: int, stop: int) -> Array:
        return draw(words_at(xp, stream, xp.arange(start, stop, dtype=np.uint64)))

    if xp is not np or groups <= BLOCK_COUNTERS:
        table = rows(0, groups)
    else:
        first = rows(0, BLOCK_COUNTERS)
        table = np.empty((groups, group_size), first.dtype)
        table[:BLOCK_COUNTERS] = first
        for start in range(BLOCK_COUNTERS, groups, BLOCK_COUNTERS):
            stop = min(start + BLOCK_COUNTERS, groups)
            table[start:stop] = rows(start, stop)
    return table.reshape(-1)[:count].reshape(shape)


def _fill_rows(
    streams: np.ndarray, shape: Sequence[int], groups: int, draw: Callable[[Words], Array]
) -> np.ndarray:
    """What :func:`fill_groups` gives for each of several streams of one key."""
    count, at_once = math.prod(shape), max(1, BLOCK_COUNTERS // groups)
    parts = []
    for begin in range(0, len(streams), at_once):
        some = streams[begin : begin + at_once]
        starts = np.ascontiguousarray(some[:, 2:4]).view(np.uint64)
        low = (starts + np.arange(groups, dtype=np.uint64)).reshape(-1)
        halves = low.view(np.uint32).reshape(-1, 2)
        c2, c3 = (np.repeat(some[:, word], groups) for word in (4, 5))
        carry = (low < np.repeat(starts[:, 0], groups)).astype(np.uint32)
        c2 = c2 + carry
        c3 = c3 + (c2 < carry).astype(np.uint32)
        key = (some[:1, 0], some[:1, 1])
        words = philox4x32(np, key, (halves[:, 0], halves[:, 1], c2, c3))
        parts.append(draw(words).reshape(len(some), -1)[:, :count])
    return np.concatenate(parts).reshape(len(streams), *shape)
