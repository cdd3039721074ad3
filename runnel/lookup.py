"""``tf.lookup``: tables from keys to values."""

from runnel import lookup_experimental as experimental
from runnel.ops.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from runnel.ops.lookup.tables import StaticHashTable
from runnel.ops.lookup.vocabulary_tables import StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]


def __dir__() -> list[str]:
    return __all__
