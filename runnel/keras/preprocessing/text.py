"""``tf.keras.preprocessing.text``: texts as sequences of numbers, and as rows of an array."""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text, without the characters in ``filters``.

    Example:
        >>> tf.keras.preprocessing.text.text_to_word_sequence("Big, bad.")
        ['big', 'bad']
    """
    text = text.lower() if lower else text
    if len(split) == 1:
        text = text.translate({ord(char): split for char in filters})
    else:
        for char in filters:
            text = text.replace(char, split)
    return [word for word in text.split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: Any = None,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
) -> list[int]:
    """The words of a text as numbers from 1 below ``n``: their hashes, which may collide."""

    def by_md5(word: str) -> int:
        return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)

    chosen: Callable[[str], int] = hash
    if hash_function == "md5":
        chosen = by_md5
    elif hash_function is not None:
        chosen = hash_function
    words = text_to_word_sequence(text, filters, lower, split)
    return [chosen(word) % (n - 1) + 1 for word in words]


def one_hot(
    text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[int]:
    """The words of a text as numbers from 1 below ``n``, by Python's hash."""
    return hashing_trick(text, n, hash, filters, lower, split)


class Tokenizer:
    """Gives words numbers from 1, the most frequent first, and texts as these numbers.

    Only words with numbers below ``num_words`` are kept; the others are left out, or become
    ``oov_token``.

    Example:
        >>> tokens = tf.keras.preprocessing.text.Tokenizer(num_words=1000)
        >>> tokens.fit_on_texts(["to be or not to be"])
        >>> tokens.texts_to_sequences(["not to"])
        [[4, 1]]
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {sorted(kwargs)}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.document_count = document_count
        self.word_counts: Any = collections.OrderedDict()
        self.word_docs: Any = collections.defaultdict(int)
        self.index_docs: Any = collections.defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> list[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return list(text)
            return [w.lower() for w in text] if isinstance(text, list) else list(text.lower())
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Counts the words of texts, and numbers them anew."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts.items(), key=lambda pair: pair[1], reverse=True)
        names = [] if self.oov_token is None else [self.oov_token]
        names += [word for word, _ in ordered]
        self.word_index = {word: number + 1 for number, word in enumerate(names)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in list(self.word_docs.items()):
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Iterable[Iterable[int]]) -> None:
        """Counts in how many sequences of numbers each number is."""
        for sequence in sequences:
            self.document_count += 1
            for number in set(sequence):
                self.index_docs[number] += 1

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """Texts as lists of numbers."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """Texts as lists of numbers, one after the other."""
        other = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for text in texts:
            numbers: list[int] = []
            for word in self._words(text):
                number = self.word_index.get(word)
                if number is None or (self.num_words and number >= self.num_words):
                    number = other
                if number is not None:
                    numbers.append(number)
            yield numbers

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Lists of numbers as texts."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable[Iterable[int]]) -> Iterator[str]:
        """Lists of numbers as texts, one after the other."""
        other = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for sequence in sequences:
            words = []
            for number in sequence:
                word = self.index_word.get(number)
                if word is None or (self.num_words and number >= self.num_words):
                    word = None if other is None else self.index_word[other]
                if word is not None:
                    words.append(word)
            yield " ".join(words)

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray:
        """A row for each text, with a column for each word; see :meth:`sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Any, mode: str = "binary") -> np.ndarray:
        """A row for each sequence: ``binary``, ``count``, ``freq`` or ``tfidf`` of each number."""
        if not self.num_words and not self.word_index:
            raise ValueError(
                "Specify a dimension (`num_words` argument), or fit on some text data first."
            )
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"Unknown vectorization mode: {mode}")
        width = self.num_words or len(self.word_index) + 1
        rows = np.zeros((len(sequences), width))
        for row, sequence in zip(rows, sequences, strict=True):
            for number, count in collections.Counter(n for n in sequence if n < width).items():
                if mode == "binary":
                    row[number] = 1
                elif mode == "count":
                    row[number] = count
                elif mode == "freq":
                    row[number] = count / len(sequence)
                else:
                    frequency = 1 + np.log(count)
                    documents = self.document_count / (1 + self.index_docs.get(number, 0))
                    row[number] = frequency * np.log(1 + documents)
        return rows

    def get_config(self) -> dict[str, Any]:
        """The arguments and the counts, as values of JSON."""
        return {
            "num_words": self.num_words,
            "filters": self.filters,
            "lower": self.lower,
            "split": self.split,
            "char_level": self.char_level,
            "oov_token": self.oov_token,
            "document_count": self.document_count,
            "word_counts": json.dumps(self.word_counts),
            "word_docs": json.dumps(self.word_docs),
            "index_docs": json.dumps(self.index_docs),
            "index_word": json.dumps(self.index_word),
            "word_index": json.dumps(self.word_index),
        }

    def to_json(self, **kwargs: Any) -> str:
        """The arguments and the counts, as JSON."""
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        return json.dumps(config, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The tokenizer that :meth:`Tokenizer.to_json` has written."""
    config = json.loads(json_string)["config"]
    parts = {
        name: json.loads(config.pop(name))
        for name in ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
    }
    made = Tokenizer(**config)
    made.word_counts = collections.OrderedDict(parts["word_counts"])
    made.word_docs.update(parts["word_docs"])
    made.index_docs.update({int(number): count for number, count in parts["index_docs"].items()})
    made.index_word = {int(number): word for number, word in parts["index_word"].items()}
    made.word_index = parts["word_index"]
    return made


__all__ = [
    "Tokenizer",
    "hashing_trick",
    "one_hot",
    "text_to_word_sequence",
    "tokenizer_from_json",
]


def __dir__() -> list[str]:
    return __all__
