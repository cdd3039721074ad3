"""Operations on strings, one in a step: what each costs on top of feeding its strings."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class StringCase:
    """An operation, and what its step is fed.

    ``build`` takes a module like TensorFlow and a placeholder for each of ``values``.
    """

    build: Callable[..., Any]
    values: tuple[Any, ...]

    def prepare(self, tf: Any) -> Callable[[], Any]:
        """A function that runs the operation as one step, and fetches one element.

        Example:
            >>> step = string_cases(1000)["lower"].prepare(tf)
            >>> step()
        """
        with tf.Graph().as_default():
            fed = [
                tf.placeholder(
                    tf.string if value.dtype == object else tf.as_dtype(value.dtype),
                    [None] * value.ndim,
                )
                for value in self.values
            ]
            result = self.build(tf, *fed)
            fetch = tf.reshape(result, [-1])[:1]
            session = tf.Session()
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            call = session.make_callable(fetch, feed_list=fed)
        values = self.values
        return lambda: call(*values)


def _texts(made: Callable[[int], bytes], count: int) -> numpy.ndarray:
    texts = numpy.empty(count, object)
    texts[:] = [made(i) for i in range(count)]
    return texts


def string_cases(count: int) -> dict[str, StringCase]:
    """Operations by name, each over ``count`` strings."""
    words = _texts(lambda i: b"word%d" % (i * 7919 % 1000), count)
    mixed = _texts(lambda i: b"Word %d of SOME length " % i + b"x" * (i % 40), count)
    other = _texts(lambda i: f"wörter {i}".encode(), count)
    whole = _texts(lambda i: b"%d" % (i * 31 - 500), count)
    real = _texts(lambda i: b"%.3f" % (i * 0.37 - 50), count)
    sentences = _texts(lambda i: b"the quick brown fox %d jumps" % i, count)
    lines = _texts(lambda i: b"%d,%.3f,name%d,%d" % (i, i * 0.5, i % 50, i % 7), count)
    quoted = _texts(lambda i: b'%d,%.3f,"name, %d",%d' % (i, i * 0.5, i % 50, i % 7), count)
    coded = _texts(lambda i: base64.urlsafe_b64encode(b"content %d" % i), count)
    raw = _texts(lambda i: b"%016d" % i, count)
    numbers = numpy.arange(count, dtype=numpy.int64) * 31 - 500
    floats = (numpy.arange(count) * 0.37 - 50).astype(numpy.float32)
    ids = numpy.arange(count, dtype=numpy.int64) * 7 % 1000
    vocabulary = [b"word%d" % i for i in range(1000)]
    segments = (numpy.arange(count) * max(count // 4, 1) // max(count, 1)).astype(numpy.int64)
    csv_defaults = [[0], [0.0], [""], [0]]

    def vocabulary_table(tf: Any, buckets: int) -> Any:
        initializer = tf.lookup.KeyValueTensorInitializer(
            vocabulary, numpy.arange(1000, dtype=numpy.int64), tf.string, tf.int64
        )
        if buckets:
            return tf.lookup.StaticVocabularyTable(initializer, buckets)
        return tf.lookup.StaticHashTable(initializer, -1)

    def to_texts(tf: Any, keys: Any) -> Any:
        initializer = tf.lookup.KeyValueTensorInitializer(
            numpy.arange(1000, dtype=numpy.int64), vocabulary, tf.int64, tf.string
        )
        return tf.lookup.StaticHashTable(initializer, "none").lookup(keys)

    def input_layer(tf: Any, texts: Any, column: Any) -> Any:
        return tf.feature_column.input_layer({"key": texts, "other": texts}, column)

    def linear_model(tf: Any, texts: Any, columns: Any) -> Any:
        return tf.feature_column.linear_model({"key": texts, "other": texts}, columns)

    def hashed(tf: Any, key: str = "key") -> Any:
        return tf.feature_column.categorical_column_with_hash_bucket(key, 1000)

    def listed(tf: Any) -> Any:
        return tf.feature_column.categorical_column_with_vocabulary_list(
            "key", [word.decode() for word in vocabulary], num_oov_buckets=1
        )

    def embedded(tf: Any, column: Any) -> Any:
        return tf.feature_column.embedding_column(column, 8)

    def crossed(tf: Any) -> Any:
        return tf.feature_column.crossed_column(["key", "other"], 1000)

    def distance(tf: Any, first: Any, second: Any) -> Any:
        return tf.edit_distance(
            tf.string_split(first, ""), tf.string_split(second, ""), normalize=False
        )

    return {
        "feed": StringCase(lambda tf, x: x, (words,)),
        "identity": StringCase(lambda tf, x: tf.identity(x), (words,)),
        "gather": StringCase(lambda tf, x, i: tf.gather(x, i % count), (words, ids)),
        "equal": StringCase(lambda tf, x: tf.equal(x, "word7"), (words,)),
        "unique": StringCase(lambda tf, x: tf.unique(x)[1], (words,)),
        "lower": StringCase(lambda tf, x: tf.strings.lower(x), (mixed,)),
        "upper utf-8": StringCase(lambda tf, x: tf.strings.upper(x, encoding="utf-8"), (other,)),
        "strip": StringCase(lambda tf, x: tf.strings.strip(x), (mixed,)),
        "length": StringCase(lambda tf, x: tf.strings.length(x), (mixed,)),
        "length utf-8": StringCase(lambda tf, x: tf.strings.length(x, unit="UTF8_CHAR"), (other,)),
        "substr": StringCase(lambda tf, x: tf.strings.substr(x, 1, 3), (words,)),
        "substr each": StringCase(
            lambda tf, x, at: tf.strings.substr(x, at % 3, at % 3), (words, ids)
        ),
        "substr utf-8": StringCase(
            lambda tf, x: tf.strings.substr(x, 1, 3, unit="UTF8_CHAR"), (other,)
        ),
        "join": StringCase(lambda tf, x: tf.string_join([x, x], "-"), (words,)),
        "join one": StringCase(lambda tf, x: tf.string_join([x, "tail"]), (words,)),
        "reduce_join": StringCase(lambda tf, x: tf.reduce_join(x, 0, separator=" "), (words,)),
        "segment join": StringCase(
            lambda tf, x, at: tf.strings.unsorted_segment_join(x, at, max(count // 4, 1) + 1, " "),
            (words, segments),
        ),
        "split": StringCase(lambda tf, x: tf.string_split(x).values, (sentences,)),
        "split v2": StringCase(lambda tf, x: tf.strings.split(x).values, (sentences,)),
        "split v2 comma": StringCase(lambda tf, x: tf.strings.split(x, sep=",").values, (lines,)),
        "split hash": StringCase(
            lambda tf, x: tf.strings.to_hash_bucket_fast(tf.string_split(x).values, 1000),
            (sentences,),
        ),
        "ngrams": StringCase(
            lambda tf, x: (
                tf.strings.ngrams(
                    tf.RaggedTensor.from_row_splits(x, tf.constant([0, count], tf.int64)), (1, 2)
                ).values
            ),
            (words,),
        ),
        "hash fast": StringCase(lambda tf, x: tf.strings.to_hash_bucket_fast(x, 1000), (words,)),
        "hash fast long": StringCase(
            lambda tf, x: tf.strings.to_hash_bucket_fast(x, 1000), (mixed,)
        ),
        "hash strong": StringCase(
            lambda tf, x: tf.strings.to_hash_bucket_strong(x, 1000, [1, 2]), (words,)
        ),
        "hash old": StringCase(lambda tf, x: tf.string_to_hash_bucket(x, 1000), (words,)),
        "to_number": StringCase(lambda tf, x: tf.string_to_number(x), (real,)),
        "to_number int32": StringCase(lambda tf, x: tf.string_to_number(x, tf.int32), (whole,)),
        "as_string int": StringCase(lambda tf, x: tf.as_string(x), (numbers,)),
        "as_string float": StringCase(lambda tf, x: tf.as_string(x), (floats,)),
        "as_string precision": StringCase(lambda tf, x: tf.as_string(x, precision=2), (floats,)),
        "encode_base64": StringCase(lambda tf, x: tf.encode_base64(x), (mixed,)),
        "decode_base64": StringCase(lambda tf, x: tf.decode_base64(x), (coded,)),
        "regex_replace": StringCase(lambda tf, x: tf.strings.regex_replace(x, "o", "0"), (words,)),
        "regex_replace class": StringCase(
            lambda tf, x: tf.strings.regex_replace(x, "[^a-z ]+", ""), (mixed,)
        ),
        "regex_replace groups": StringCase(
            lambda tf, x: tf.strings.regex_replace(x, r"(\w+) (\w+)", r"\2 \1"), (sentences,)
        ),
        "regex_full_match": StringCase(
            lambda tf, x: tf.strings.regex_full_match(x, "word[0-9]*7"), (words,)
        ),
        "transcode": StringCase(
            lambda tf, x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"), (other,)
        ),
        "unicode_decode": StringCase(
            lambda tf, x: tf.strings.unicode_decode(x, "UTF-8").values, (other,)
        ),
        "unicode_script": StringCase(
            lambda tf, x: tf.strings.unicode_script(tf.strings.unicode_decode(x, "UTF-8").values),
            (other,),
        ),
        "decode_raw": StringCase(lambda tf, x: tf.decode_raw(x, tf.uint8), (raw,)),
        "decode_csv": StringCase(lambda tf, x: tf.decode_csv(x, csv_defaults)[1], (lines,)),
        "decode_csv quoted": StringCase(lambda tf, x: tf.decode_csv(x, csv_defaults)[1], (quoted,)),
        "edit_distance": StringCase(distance, (words, words[::-1].copy())),
        "table lookup": StringCase(lambda tf, x: vocabulary_table(tf, 0).lookup(x), (words,)),
        "table with oov": StringCase(lambda tf, x: vocabulary_table(tf, 5).lookup(x), (mixed,)),
        "table to strings": StringCase(to_texts, (ids,)),
        "column hash embedding": StringCase(
            lambda tf, x: input_layer(tf, x, [embedded(tf, hashed(tf))]), (words,)
        ),
        "column vocabulary embedding": StringCase(
            lambda tf, x: input_layer(tf, x, [embedded(tf, listed(tf))]), (words,)
        ),
        "column hash indicator": StringCase(
            lambda tf, x: input_layer(tf, x, [tf.feature_column.indicator_column(hashed(tf))]),
            (words,),
        ),
        "column crossed embedding": StringCase(
            lambda tf, x: input_layer(tf, x, [embedded(tf, crossed(tf))]), (words,)
        ),
        "linear_model": StringCase(
            lambda tf, x: linear_model(tf, x, [hashed(tf), crossed(tf)]), (words,)
        ),
    }
