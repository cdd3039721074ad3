"""Random distributions over a Philox stream, as TensorFlow's CPU kernels have them.

The functions are written over an array namespace ``xp`` (NumPy, or ``jax.numpy`` while a cluster is
traced) and take the position of the op's stream as six words; see
:mod:`~runnel.ops.sampling.philox`.

Integers and uniforms have the same bits under NumPy, under XLA and in TensorFlow. Normals agree
within a few units in the last place, because each library has its own logarithm and sine. For the
same reason a draw of a truncated normal, less than once in ten million, falls on the other side of
the threshold, which changes that group of two or four elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.ops.block_value import RowBlocks
from runnel.ops.sampling.philox import (
    BLOCK_COUNTERS,
    RESERVED_PER_OUTPUT,
    Array,
    Words,
    fill_groups,
    moved_words,
    words_at,
)

_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23}
_SMALLEST_UNIFORM = 1e-7  # TensorFlow's guard against log(0), for every element type
_TRUNCATE_AT = 2.0


def uniform(xp: Any, stream: Array, shape: Sequence[int], dtype: Any) -> Array:
    """Uniform floats in [0, 1): the result of ``RandomUniform``.

    >>> from runnel.ops.sampling.philox import PhiloxStream
    >>> stream = PhiloxStream.from_seeds(1, 2).words()
    >>> bool((uniform(np, stream, (1000,), np.float64) < 1).all())
    True
    """
    dtype = np.dtype(dtype)

    def draw(words: Words) -> Array:
        if dtype == np.float64:
            return unit_of_pair(*_stack_pairs(xp, words))
        return unit_of_word(xp.stack(words, axis=-1), dtype).astype(dtype, copy=False)

    return fill_groups(xp, stream, shape, _group_size(dtype), draw)


def uniform_int(
    xp: Any, stream: Array, shape: Sequence[int], minval: Array, maxval: Array, dtype: Any
) -> Array:
    """Uniform int32 or int64 in [minval, maxval): the result of ``RandomUniformInt``.

    ``minval`` and ``maxval`` are scalars of ``dtype``; the caller checks that minval < maxval.
    """
    dtype = np.dtype(dtype)
    bits = np.dtype(f"uint{8 * dtype.itemsize}")  # where the difference and the sum may wrap
    low = xp.asarray(minval, dtype).reshape(1).view(bits)
    span = xp.asarray(maxval, dtype).reshape(1).view(bits) - low

    def draw(words: Words) -> Array:
        if dtype.itemsize == 4:
            drawn = xp.stack(words, axis=-1)
        else:
            first, second = _stack_pairs(xp, words)
            drawn = first.astype(bits) | second.astype(bits) << np.uint64(32)
        return (drawn % span + low).view(dtype)

    return fill_groups(xp, stream, shape, _group_size(dtype), draw)


def normal(xp: Any, stream: Array, shape: Sequence[int], dtype: Any) -> Array:
    """Standard normal floats: the result of ``RandomStandardNormal``."""
    dtype = np.dtype(dtype)

    def draw(words: Words) -> Array:
        return xp.stack(normal_columns(xp, words, dtype), axis=-1).astype(dtype, copy=False)

    return fill_groups(xp, stream, shape, _group_size(dtype), draw)


def truncated_normal(xp: Any, stream: Array, shape: Sequence[int], dtype: Any) -> Array:
    """Standard normal floats, drawn again until within (-2, 2): the result of ``TruncatedNormal``.

    Each group of elements has its own stretch of the stream, and takes the first draws of that
    stretch that fall within the limits.
    """
    dtype = np.dtype(dtype)
    count = math.prod(shape)
    group_size = _group_size(dtype)
    groups = -(-count // group_size)
    if xp is np:
        table = _truncated_numpy(stream, groups, group_size, dtype)
    else:
        table = _truncated_traced(xp, stream, groups, group_size, dtype)
    return table.astype(dtype).reshape(-1)[:count].reshape(shape)


def in_blocks(
    draw: Any, stream: np.ndarray, shape: Sequence[int], dtype: Any, *bounds: Any
) -> RowBlocks:
    """What ``draw`` (one of the functions above) gives, some rows at a time: the same numbers."""
    dtype = np.dtype(dtype)
    group, row = _group_size(dtype), math.prod(shape[1:])
    counters = _stretch(group) if draw is truncated_normal else 1

    def rows(start: int, stop: int) -> Array:
        # Blocks begin at a multiple of ROWS_TOGETHER rows, and so at the beginning of a group.
        first = moved_words(stream, start * row // group * counters)
        return draw(np, first, (stop - start, *shape[1:]), *bounds, dtype)

    return RowBlocks(shape, dtype, rows)


def multinomial(xp: Any, stream: Array, logits: Array, num_samples: int, dtype: Any) -> Array:
    """Class indices drawn with probability softmax(logits), shape [batch, num_samples].

    This is the result of ``Multinomial`` on one thread: TensorFlow's own draws for a large batch
    depend on how many threads share it. Infinite and NaN logits count as probability zero.
    """
    finite = xp.isfinite(logits)
    logits = xp.where(finite, logits.astype(np.float64), np.finfo(np.float64).min)
    weights = xp.where(finite, xp.exp(logits - xp.max(logits, axis=1, keepdims=True)), 0.0)
    cumulative = xp.cumsum(weights, axis=1)
    draws = uniform(xp, stream, (logits.shape[0], num_samples), np.float64)
    targets = draws * cumulative[:, -1:]
    if xp is np:
        indices = np.empty(targets.shape, dtype)
        for row, (edges, wanted) in enumerate(zip(cumulative, targets)):
            indices[row] = np.searchsorted(edges, wanted, side="right")
        return indices
    # A fused count of the edges passed: XLA never materialises the comparison.
    return xp.sum(cumulative[:, None, :] <= targets[:, :, None], axis=-1, dtype=dtype)


def permutation(xp: Any, stream: Array, size: int) -> Array:
    """The order in which ``RandomShuffle`` puts ``size`` rows: row i of the result is order[i].

    >>> from runnel.ops.sampling.philox import PhiloxStream
    >>> sorted(permutation(np, PhiloxStream.from_seeds(1, 2).words(), 4).tolist())
    [0, 1, 2, 3]
    """
    if size < 2:
        return xp.arange(size)
    draws = fill_groups(xp, stream, (size - 1,), 4, lambda words: xp.stack(words, axis=-1))
    distances = (draws % xp.arange(size, 1, -1, dtype=np.uint32)).astype(np.int64)
    if xp is np:
        return _shuffle_numpy(distances.tolist())
    return _shuffle_traced(xp, distances)


def _shuffle_numpy(distances: list[int]) -> np.ndarray:
    """Each row in turn changes places with the one so far ahead of it (Fisher and Yates)."""
    order = list(range(len(distances) + 1))
    for here, distance in enumerate(distances):
        there = here + distance
        order[here], order[there] = order[there], order[here]
    return np.array(order)


def _shuffle_traced(xp: Any, distances: Array) -> Array:
    """The same swaps, in rounds of those that no earlier swap still waiting stands before.

    With random distances a logarithmic number of rounds is enough (Shun et al., "Sequential
    random permutation, list contraction and tree contraction are highly parallel", SODA 2015).
    """
    from jax import lax

    size = distances.shape[0] + 1
    here = xp.arange(size)
    there = here + xp.append(distances, 0)  # the last row stays

    def swap(state: tuple[Array, Array]) -> tuple[Array, Array]:
        order, waiting = state
        number = xp.where(waiting, here, size)
        first = number.at[there].min(number)  # of the waiting swaps that touch each place
        now = waiting & (first == here) & (first[there] == here)
        swapped = xp.where(now, order[there], order)
        swapped = swapped.at[xp.where(now, there, size)].set(order, mode="drop")
        return swapped, waiting & ~now

    return lax.while_loop(lambda state: xp.any(state[1]), swap, (here, here < size - 1))[0]


def _group_size(dtype: np.dtype) -> int:
    """Elements that TensorFlow makes of the four words at one counter."""
    return 2 if dtype.itemsize == 8 else 4


def _stretch(group_size: int) -> int:
    """Counters from one group of a truncated normal to the next."""
    return group_size * RESERVED_PER_OUTPUT // 4


def _real_type(dtype: np.dtype) -> np.dtype:
    """The element type in which normals of ``dtype`` are computed."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _stack_pairs(xp: Any, words: Words) -> tuple[Array, Array]:
    """The first and the second words of the two pairs at each counter."""
    return xp.stack(words[::2], axis=-1), xp.stack(words[1::2], axis=-1)


# TensorFlow puts random bits under the exponent of 1.0 and subtracts 1.0. Scaling the same bits
# gives the same number, exactly, without reinterpreting integers as floats.


def unit_of_word(word: Array, dtype: np.dtype) -> Array:
    """A uniform in [0, 1) from the low bits of a word; as float32, exact for the 16-bit types."""
    bits = _MANTISSA_BITS[dtype.name]
    mask, scale = np.uint32((1 << bits) - 1), np.float32(2.0**-bits)
    # By way of int32: processors convert signed integers faster.
    return (word & mask).view(np.int32).astype(np.float32) * scale


def unit_of_pair(first: Array, second: Array) -> Array:
    """A float64 uniform in [0, 1) from 20 bits of the first word and all of the second."""
    high = (first & np.uint32(0xFFFFF)).astype(np.float64) * 2.0**-20
    return high + second.astype(np.float64) * 2.0**-52


def normal_columns(xp: Any, words: Words, dtype: np.dtype) -> list[Array]:
    """Box and Muller's transform: two normals from each two uniforms."""
    real = _real_type(dtype)
    if real == np.float64:
        units = [unit_of_pair(*words[:2]), unit_of_pair(*words[2:])]
    else:
        units = [unit_of_word(word, real) for word in words]
    columns = []
    for unit, turn in zip(units[::2], units[1::2]):
        unit = xp.maximum(unit, real.type(_SMALLEST_UNIFORM))
        radius = xp.sqrt(real.type(-2) * xp.log(unit))
        sine, cosine = _sine_cosine(xp, turn)
        columns += [sine * radius, cosine * radius]
    return columns


def _sine_cosine(xp: Any, turn: Array) -> tuple[Array, Array]:
    """The sine and cosine of ``turn`` turns, for 0 <= turn < 1."""
    # TensorFlow's float32 angle is rounded from a product in float64. Near a half turn, where the
    # sine vanishes, nothing less gives the same digits.
    product = turn.astype(np.float64) * (2 * math.pi)
    if xp is np or turn.dtype == np.float64:
        angle = product.astype(turn.dtype)
        return xp.sin(angle), xp.cos(angle)
    # XLA's CPU compiler (seen in jaxlib 0.10) calls the C library for every float32 sine: three
    # times the cost of all the rest. These series to the nearest quarter turn become vector code;
    # on [-pi/4, pi/4] their remainders are under a twentieth of a unit in the last place.
    from jax import lax

    # A conversion to float32 and back would not do: XLA may leave out such a pair.
    angle = lax.reduce_precision(product, exponent_bits=8, mantissa_bits=23)
    quarter = (turn * np.float32(4) + np.float32(0.5)).astype(np.int32)
    rest = angle - quarter.astype(np.float64) * (math.pi / 2)
    x = rest.astype(np.float32)
    sine = x + x * _series(x * x, (0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880))
    cosine = 1 + _series(x * x, (0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800))
    odd = (quarter & 1) == 1
    sine, cosine = xp.where(odd, cosine, sine), xp.where(odd, sine, cosine)
    sine = xp.where((quarter & 2) == 2, -sine, sine)
    cosine = xp.where(((quarter + 1) & 2) == 2, -cosine, cosine)
    return sine, cosine


def _series(x: Array, coefficients: Sequence[float]) -> Array:
    """The float32 polynomial with these coefficients, lowest power first, by Horner's rule."""
    *rest, value = (np.float32(c) for c in coefficients)
    for coefficient in reversed(rest):
        value = value * x + coefficient
    return value


def _truncated_numpy(stream: Array, groups: int, group_size: int, dtype: np.dtype) -> Array:
    """One counter for every group, then two for those left wanting (one in six), then four..."""
    table = np.empty((groups, group_size), _real_type(dtype))

    def draws(block: Array, counters: int) -> list[Array]:
        starts = block[:, None] * np.uint64(_stretch(group_size))
        offsets = starts + np.arange(counters, dtype=np.uint64)
        return normal_columns(np, words_at(np, stream, offsets.reshape(-1)), dtype)

    wanting = []
    for start in range(0, groups, BLOCK_COUNTERS):
        block = np.arange(start, min(start + BLOCK_COUNTERS, groups), dtype=np.uint64)
        full = np.ones(block.size, bool)
        for place, column in enumerate(draws(block, 1)):
            table[start : start + BLOCK_COUNTERS, place] = column
            full &= np.abs(column) < _TRUNCATE_AT
        wanting.append(block[~full])
    counters = 2
    while wanting:
        pending, wanting = np.concatenate(wanting), []
        step = BLOCK_COUNTERS // counters
        for start in range(0, pending.size, step):
            block = pending[start : start + step]
            rows = np.stack(draws(block, counters), axis=-1).reshape(block.size, -1)
            within = np.abs(rows) < _TRUNCATE_AT
            within &= np.cumsum(within, axis=1) <= group_size
            full = np.count_nonzero(within, axis=1) == group_size
            table[block[full]] = rows[within & full[:, None]].reshape(-1, group_size)
            wanting.append(block[~full])
        counters *= 2
    return table


def _truncated_traced(
    xp: Any, stream: Array, groups: int, group_size: int, dtype: np.dtype
) -> Array:
    """One more counter for every group at each turn of a loop, until the last group is full."""
    from jax import lax

    offsets = xp.arange(groups, dtype=np.uint64) * np.uint64(_stretch(group_size))

    def unfilled(state: tuple[Array, Array, tuple[Array, ...]]) -> Array:
        return xp.any(state[1] < group_size)

    def draw(state: tuple[Array, Array, tuple[Array, ...]]) -> Any:
        turn, filled, slots = state
        for column in normal_columns(xp, words_at(xp, stream, offsets + turn), dtype):
            within = xp.abs(column) < _TRUNCATE_AT
            slots = tuple(
                xp.where(within & (filled == place), column, slot)
                for place, slot in enumerate(slots)
            )
            filled = filled + within
        return turn + np.uint64(1), filled, slots

    slots = tuple(xp.zeros(groups, _real_type(dtype)) for _ in range(group_size))
    state = xp.asarray(0, np.uint64), xp.zeros(groups, np.int32), slots
    return xp.stack(lax.while_loop(unfilled, draw, state)[2], axis=-1)
