"""``tf.contrib.learn.preprocessing``: texts as rows of numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from runnel.gfile import GFile

__all__ = ["CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Words and their numbers, in the order in which they came; 0 is for words that are unknown."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown = unknown_token
        self._mapping = {unknown_token: 0}
        self._words = [unknown_token]
        self._counts: Counter[str] = Counter()
        self._frozen = False

    def __len__(self) -> int:
        return len(self._words)

    def freeze(self, freeze: bool = True) -> None:
        """From now on, words that are not there are unknown."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word, which is added unless the vocabulary is frozen."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._words)
            self._words.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category):
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Leaves out rare words (and those more frequent than ``max_frequency``)."""
        # The most frequent ones first, equal ones by the alphabet.
        ordered = sorted(sorted(self._counts), key=lambda word: -self._counts[word])
        kept = [
            word
            for word in ordered
            if self._counts[word] > min_frequency
            and (max_frequency < 0 or self._counts[word] < max_frequency)
        ]
        self._words = [self._unknown, *kept]
        self._mapping = {word: number for number, word in enumerate(self._words)}

    def reverse(self, class_id: int) -> str:
        """The word of a number."""
        return self._words[class_id]


class VocabularyProcessor:
    """Texts as rows of ``max_document_length`` numbers: cut, or filled up with 0.

    Example:
        >>> processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
        >>> list(processor.fit_transform(["a cat", "a dog"]))
        [array([1, 2, 0, 0]), array([1, 3, 0, 0])]
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Any], Iterable[list[str]]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of texts."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """The rows of texts."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for place, word in enumerate(list(words)[: self.max_document_length]):
                row[place] = self.vocabulary_.get(word)
            yield row

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: Any = None
    ) -> Iterator[np.ndarray]:
        """Learns the words of texts, then gives their rows."""
        given = list(raw_documents)
        self.fit(given)
        return self.transform(given)

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The texts of rows."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in row)

    def save(self, filename: Any) -> None:
        """Writes the vocabulary into a file, for :meth:`restore`; a tokenizer is not written."""
        kept = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": self.vocabulary_._words,
        }
        with GFile(str(filename), "w") as file:
            file.write(json.dumps(kept))

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """A processor with the vocabulary of a file that :meth:`save` wrote."""
        with GFile(str(filename)) as file:
            kept = json.loads(file.read())
        unknown, *words = kept["words"]
        vocabulary = CategoricalVocabulary(unknown)
        for word in words:
            vocabulary.get(word)
        vocabulary.freeze()
        return cls(kept["max_document_length"], kept["min_frequency"], vocabulary)


def __dir__() -> list[str]:
    return __all__
