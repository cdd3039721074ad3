"""``tf.keras.preprocessing.sequence``: sequences of different lengths as arrays."""

from __future__ import annotations

import random
from collections.abc import Sequence as Sequences
from typing import Any

import numpy as np

from runnel.keras.sequence import Sequence


def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Sequences as the rows of one array: padded with ``value``, or cut, to one length.

    Example:
        >>> tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3]]).tolist()
        [[0, 1], [2, 3]]
    """
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for option, given in (("Padding", padding), ("Truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(f'{option} type "{given}" not understood: it is pre or post')
    for sequence in sequences:
        if not hasattr(sequence, "__len__"):
            raise ValueError(
                f"`sequences` must be a list of iterables. Found non-iterable: {sequence}"
            )
    length = max((len(s) for s in sequences), default=0) if maxlen is None else maxlen
    inner = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    if (
        isinstance(value, str)
        and not np.issubdtype(np.dtype(dtype), np.str_)
        and dtype is not object
    ):
        raise ValueError(f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}")
    rows = np.full((len(sequences), length, *inner), value, dtype=dtype)
    for row, sequence in zip(rows, sequences, strict=True):
        kept = sequence[-length:] if truncating == "pre" else sequence[:length]
        if not len(sequence) or not length:
            continue
        array = np.asarray(kept, dtype=dtype)
        if array.shape[1:] != inner:
            raise ValueError(
                f"The elements of a sequence have shape {array.shape[1:]}, but those of the first "
                f"have {inner}"
            )
        if padding == "post":
            row[: len(array)] = array
        else:
            row[-len(array) :] = array
    return rows


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """How probably word2vec keeps the word of each rank, if words follow Zipf's law."""
    gamma = 0.577  # Euler's
    rank = np.arange(size)
    rank[0] = 1
    inverse = rank * (np.log(rank) + gamma) + 0.5 - 1.0 / (12.0 * rank)
    frequency = sampling_factor * inverse
    return np.minimum(1.0, frequency / np.sqrt(frequency))


def skipgrams(
    sequence: Sequences[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[Any], list[Any]]:
    """Pairs of words near each other with the label 1, and pairs with random words with 0."""
    couples: list[Any] = []
    labels: list[Any] = []
    for place, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        first, end = max(0, place - window_size), min(len(sequence), place + window_size + 1)
        for other in range(first, end):
            if other != place and sequence[other]:
                couples.append([word, sequence[other]])
                labels.append([0, 1] if categorical else 1)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [couple[0] for couple in couples]
        random.shuffle(words)
        couples += [
            [words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)
        ]
        labels += [[1, 0] if categorical else 0] * count
    if shuffle:
        chosen = random.randint(0, int(1e7)) if seed is None else seed
        random.Random(chosen).shuffle(couples)
        random.Random(chosen).shuffle(labels)
    return couples, labels


class TimeseriesGenerator(Sequence):
    """Batches of windows of a series, each with the target that follows its window.

    Example:
        >>> windows = tf.keras.preprocessing.sequence.TimeseriesGenerator(x, y, length=10)
        >>> model.fit_generator(windows, epochs=5)
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                "Data and targets have to be of same length. Data length is "
                f"{len(data)} while target length is {len(targets)}"
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse = shuffle, reverse
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is "
                "disallowed, as no part of the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        steps = self.end_index - self.start_index + self.batch_size * self.stride
        return steps // (self.batch_size * self.stride)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            end = min(first + self.batch_size * self.stride, self.end_index + 1)
            rows = np.arange(first, end, self.stride)
        samples = np.array(
            [self.data[row - self.length : row : self.sampling_rate] for row in rows]
        )
        targets = np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1, ...], targets) if self.reverse else (samples, targets)


__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]


def __dir__() -> list[str]:
    return __all__
