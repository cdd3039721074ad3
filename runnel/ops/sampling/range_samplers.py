"""Drawing classes from a range as TensorFlow's candidate samplers do, word for word.

A sampler turns the words of a stream into classes, one try after another. TensorFlow makes tries
one by one; here a block of them is made at once, and those beyond the last class that counts are
dropped. That changes nothing: an execution reserves a fixed stretch of its stream.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from runnel.ops.sampling.distributions import unit_of_pair, unit_of_word
from runnel.ops.sampling.philox import words_at

_MOST_TRIES = 2**31 - 1


class SampledBatch(NamedTuple):
    """Classes, and how often each was expected to be among them."""

    classes: np.ndarray
    true_expected: np.ndarray
    expected: np.ndarray


class WordSequence:
    """The words of a stream, one after another."""

    def __init__(self, stream: np.ndarray) -> None:
        self._stream = stream
        self._counter = 0
        self._left = np.empty(0, np.uint32)

    def take(self, count: int) -> np.ndarray:
        """The next ``count`` words."""
        missing = count - self._left.size
        if missing > 0:
            counters = -(-missing // 4)
            offsets = np.arange(self._counter, self._counter + counters, dtype=np.uint64)
            self._counter += counters
            drawn = np.stack(words_at(np, self._stream, offsets), axis=1).reshape(-1)
            self._left = np.concatenate([self._left, drawn])
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def put_back(self, words: np.ndarray) -> None:
        """Has ``words`` come next."""
        self._left = np.concatenate([words, self._left])


class RangeSampler:
    """Classes in [0, range), each with a probability."""

    def __init__(self, size: int) -> None:
        self.size = size

    def tries(self, words: WordSequence, count: int) -> np.ndarray:
        """The classes of the next ``count`` tries, or of some less."""
        raise NotImplementedError

    def probability(self, classes: np.ndarray) -> np.ndarray:
        """Of each class, in float32."""
        raise NotImplementedError

    def possible(self) -> int:
        """How many classes may be drawn at all."""
        return self.size

    def sample(
        self, stream: np.ndarray, true_classes: np.ndarray, count: int, unique: bool
    ) -> SampledBatch:
        """``count`` classes, all different if ``unique``, and the expected counts."""
        words = WordSequence(stream)
        if unique:
            classes, tries = self._distinct(words, count)
        else:
            classes, tries = self._any(words, count), count
        return SampledBatch(
            classes,
            _expected_count(self.probability(true_classes), count, tries),
            _expected_count(self.probability(classes), count, tries),
        )

    def _any(self, words: WordSequence, count: int) -> np.ndarray:
        classes = self.tries(words, count)
        while classes.size < count:
            classes = np.concatenate([classes, self.tries(words, count - classes.size)])
        return classes

    def _distinct(self, words: WordSequence, count: int) -> tuple[np.ndarray, int]:
        """The first ``count`` different classes, and how many tries it took to draw them."""
        tried = self.tries(words, 2 * count)
        while True:
            first_seen = np.sort(np.unique(tried, return_index=True)[1])
            if first_seen.size >= count:
                chosen = first_seen[:count]
                return tried[chosen], int(chosen[-1]) + 1
            if tried.size > _MOST_TRIES:
                raise ValueError(
                    f"{tried.size} tries have drawn only {first_seen.size} of {count} different "
                    "classes: the others are too improbable"
                )
            tried = np.concatenate([tried, self.tries(words, tried.size + count)])


def _expected_count(probability: np.ndarray, count: int, tries: int) -> np.ndarray:
    if tries == count:
        return probability * np.float32(count)
    return -np.expm1(np.float32(tries) * np.log1p(-probability))


def _whole_numbers(words: np.ndarray, below: int) -> np.ndarray:
    """Of words of 32 or 64 bits: numbers below ``below``, without those that would be biased."""
    kind = words.dtype.type
    if below & (below - 1) == 0:
        return (words & kind(below - 1)).astype(np.int64)
    return (words[words >= _biased_below(kind, below)] % kind(below)).astype(np.int64)


def _biased_below(kind: type[np.unsignedinteger], below: int) -> np.unsignedinteger:
    """Words below this are drawn again, so that the others divide evenly."""
    return kind(int(np.iinfo(kind).max) % below + 1)


class UniformSampler(RangeSampler):
    """Every class is as probable as the others."""

    def tries(self, words: WordSequence, count: int) -> np.ndarray:
        pairs = words.take(2 * count).astype(np.uint64).reshape(-1, 2)
        return _whole_numbers(pairs[:, 0] | pairs[:, 1] << np.uint64(32), self.size)

    def probability(self, classes: np.ndarray) -> np.ndarray:
        return np.full(np.shape(classes), 1.0 / self.size, np.float32)


class LogUniformSampler(RangeSampler):
    """Zipf's law, about: class k has the probability log((k + 2) / (k + 1)) / log(range + 1)."""

    def tries(self, words: WordSequence, count: int) -> np.ndarray:
        pairs = words.take(2 * count).reshape(-1, 2)
        drawn = np.exp(unit_of_pair(pairs[:, 0], pairs[:, 1]) * math.log1p(self.size))
        return (drawn.astype(np.int64) - 1) % self.size

    def probability(self, classes: np.ndarray) -> np.ndarray:
        ratio = (classes + 2.0) / (classes + 1.0)
        return (np.log(ratio) / math.log1p(self.size)).astype(np.float32)


class LearnedUnigramSampler(RangeSampler):
    """Classes as often as they were seen; every class counts as seen once before."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._counts = np.ones(size, np.int64)
        self._totals = np.cumsum(self._counts)

    def tries(self, words: WordSequence, count: int) -> np.ndarray:
        position = _whole_numbers(words.take(count), int(self._totals[-1]))
        return np.searchsorted(self._totals, position, side="right")

    def probability(self, classes: np.ndarray) -> np.ndarray:
        return self._counts[classes].astype(np.float32) / np.float32(self._totals[-1])

    def learn(self, classes: np.ndarray) -> None:
        """Counts ``classes`` as seen; when 2**31 - 1 have been, it has learned enough."""
        room = _MOST_TRIES - int(self._totals[-1])
        np.add.at(self._counts, classes.reshape(-1)[:room], 1)
        np.cumsum(self._counts, out=self._totals)


class FixedUnigramSampler(RangeSampler):
    """Classes in proportion to weights, drawn by the alias method (Walker 1977)."""

    def __init__(self, weights: np.ndarray) -> None:
        super().__init__(weights.size)
        self._weights = weights
        self._total = weights.sum(dtype=np.float64)
        self._keep, self._alias = _alias_table(weights)

    def possible(self) -> int:
        return int(np.count_nonzero(self._weights))

    def tries(self, words: WordSequence, count: int) -> np.ndarray:
        # A try is a word that says whether to keep the bin, then words until one says which.
        taken = words.take(2 * count)
        if self.size & (self.size - 1):
            least = _biased_below(np.uint32, self.size)
            while (biased := np.flatnonzero(taken[1::2] < least)).size:
                taken = np.delete(taken, 2 * biased[0] + 1)
        whole = taken.size // 2 * 2
        words.put_back(taken[whole:])
        unit = unit_of_word(taken[0:whole:2], np.dtype(np.float32))
        bins = (taken[1:whole:2] % np.uint32(self.size)).astype(np.int64)
        return np.where(unit < self._keep[bins], bins, self._alias[bins])

    def probability(self, classes: np.ndarray) -> np.ndarray:
        return (self._weights[classes] / self._total).astype(np.float32)


def _alias_table(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each bin the probability to keep it, and the class that is drawn otherwise."""
    total = 0.0
    for weight in weights.tolist():
        total += weight
    scaled = ((weights * np.float32(weights.size)).astype(np.float64) / total).tolist()
    alias = np.arange(weights.size)
    low = [i for i, p in enumerate(scaled) if p < 1.0]
    high = [i for i, p in enumerate(scaled) if not p < 1.0]
    while high and low:
        small, large = low.pop(), high.pop()
        alias[small] = large
        scaled[large] -= 1.0 - scaled[small]
        (low if scaled[large] < 1.0 else high).append(large)
    keep = np.array(scaled, np.float32)
    keep[high + low] = 1.0  # rounding has left them
    return keep, alias


class AllSampler(RangeSampler):
    """Every class, in order, once."""

    def sample(
        self, stream: np.ndarray, true_classes: np.ndarray, count: int, unique: bool
    ) -> SampledBatch:
        del stream, unique
        ones = np.ones(count, np.float32)
        return SampledBatch(np.arange(count), np.ones(true_classes.shape, np.float32), ones)
