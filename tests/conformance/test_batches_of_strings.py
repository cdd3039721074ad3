"""Operations on fed batches of strings, odd ones among them, give what TensorFlow's give."""

from __future__ import annotations

import numpy as np
import pytest

import runnel

reference = pytest.importorskip("tensorflow").compat.v1

RNG = np.random.default_rng(3)
LETTERS = ["a", "b", "o", " ", ",", "-", "_", "|", "0", "7", "\n", "\0", "ä", "€", "日", "😀"]


def texts(count: int, longest: int, letters: list[str] = LETTERS) -> np.ndarray:
    """Random texts of these letters, the empty one first."""
    made = np.empty(count, object)
    sizes = [0, *RNG.integers(0, longest, count - 1)]
    made[:] = ["".join(RNG.choice(letters, size)).encode() for size in sizes]
    return made


def written(formats: list[str], count: int = 90) -> np.ndarray:
    """Numbers, written in each of these ways."""
    made = np.empty(count, object)
    values = RNG.normal(size=count) * 10.0 ** RNG.integers(-3, 4, count)
    made[:] = [(formats[i % len(formats)] % v).encode() for i, v in enumerate(values)]
    return made


TEXTS = texts(120, 30)
PLAIN = texts(120, 30, LETTERS[:10])
DAMAGED = np.array(
    [b"\xff", b"a\x80b", b"\xc3", b"\xe2\x82", b"ok\xf0\x9f", b"\xc3\xa4\xc3"], object
)
REALS = written(["%f", "%g", "%.2e", " %.17g ", "%+g", "%.0f."])
WHOLE = written(["%d", " %d", "%d ", "%06d"])
POSITIONS = RNG.integers(0, 2, len(TEXTS)).astype(np.int32)
SEGMENTS = RNG.integers(0, 9, len(TEXTS)).astype(np.int64)


def sparse(parts):
    return [parts.indices, parts.values, parts.dense_shape]


def rows(*ragged):
    return [part for one in ragged for part in (one.values, one.row_splits)]


CASES = {
    "lower": (lambda tf, x: tf.strings.lower(x, encoding="utf-8"), TEXTS),
    "upper": (lambda tf, x: tf.strings.upper(x), TEXTS),
    "strip": (lambda tf, x: tf.strings.strip(x), TEXTS),
    "length": (lambda tf, x: tf.strings.length(x), TEXTS),
    "length in characters": (lambda tf, x: tf.strings.length(x, unit="UTF8_CHAR"), TEXTS),
    "length of damaged": (lambda tf, x: tf.strings.length(x, unit="UTF8_CHAR"), DAMAGED),
    "matrix": (lambda tf, x: tf.strings.length(x), TEXTS.reshape(12, 10)),
    "substr": (lambda tf, x: tf.strings.substr(x, 0, 3), TEXTS),
    "substr each": (
        lambda tf, x, at: tf.strings.substr(tf.strings.join(["!", x]), at, at + 1),
        TEXTS,
        POSITIONS,
    ),
    "substr from the end": (
        lambda tf, x: tf.strings.substr(tf.strings.join(["abc", x]), -2, 1),
        TEXTS,
    ),
    "substr of none": (lambda tf, x: tf.strings.substr(x, 0, 0), TEXTS),
    "substr of rows": (
        lambda tf, x, at: tf.strings.substr(tf.strings.join(["!!!", x]), at, 2 * at),
        *(TEXTS.reshape(12, 10), POSITIONS[:10]),
    ),
    "substr in characters": (lambda tf, x: tf.strings.substr(x, 0, 3, unit="UTF8_CHAR"), TEXTS),
    "substr in characters from the end": (
        lambda tf, x: tf.strings.substr(tf.strings.join(["aä€", x]), -3, 2, unit="UTF8_CHAR"),
        TEXTS,
    ),
    "join": (lambda tf, x, y: tf.strings.join([x, "and", y], " "), TEXTS, TEXTS[::-1].copy()),
    "join of nothing": (lambda tf, x: tf.strings.join([x, x]), TEXTS[:0]),
    "reduce_join": (lambda tf, x: tf.reduce_join(x, 1, separator="+"), TEXTS.reshape(12, 10)),
    "segment join": (
        lambda tf, x, at: tf.strings.unsorted_segment_join(x, at, 10, "+"),
        TEXTS,
        SEGMENTS,
    ),
    "segment join of rows": (
        lambda tf, x, at: tf.strings.unsorted_segment_join(x, at, 10, "+"),
        *(TEXTS.reshape(40, 3), SEGMENTS[:40]),
    ),
    "split": (lambda tf, x: sparse(tf.string_split(x)), PLAIN),
    "split at several": (lambda tf, x: sparse(tf.string_split(x, " ,-")), TEXTS),
    "split with empty parts": (
        lambda tf, x: sparse(tf.string_split(x, "a,", skip_empty=False)),
        TEXTS,
    ),
    "split into bytes": (lambda tf, x: sparse(tf.string_split(x, "")), TEXTS),
    "split of one": (lambda tf, x: sparse(tf.string_split(x)), np.array([b" a  bc "], object)),
    "split of an empty one": (lambda tf, x: sparse(tf.string_split(x)), TEXTS[:1]),
    "split of nothing": (lambda tf, x: sparse(tf.string_split(x)), TEXTS[:0]),
    "split v2": (lambda tf, x: sparse(tf.strings.split(x, result_type="SparseTensor")), PLAIN),
    "split v2 at a comma": (
        lambda tf, x: sparse(tf.strings.split(x, ",", result_type="SparseTensor")),
        TEXTS,
    ),
    "to float64": (lambda tf, x: tf.string_to_number(x, tf.float64), REALS),
    "to int32": (lambda tf, x: tf.string_to_number(x, tf.int32), WHOLE),
    "to int64": (lambda tf, x: tf.string_to_number(x, tf.int64), WHOLE),
    "to odd numbers": (
        lambda tf, x: tf.string_to_number(x),
        np.array(
            [b"inf", b"-INF", b"nan", b"infinity", b"1e400", b"1e-400", b"0.1", b"-0"], object
        ),
    ),
    "to the largest": (
        lambda tf, x: tf.string_to_number(x, tf.int64),
        np.array([b"9223372036854775807", b"-9223372036854775808", b"0", b"-0"], object),
    ),
    "base64": (lambda tf, x: tf.encode_base64(x), TEXTS),
    "base64 padded": (lambda tf, x: tf.encode_base64(x, pad=True), TEXTS),
    "from base64": (lambda tf, x: tf.decode_base64(tf.encode_base64(x)), TEXTS),
    "from padded base64": (lambda tf, x: tf.decode_base64(tf.encode_base64(x, pad=True)), TEXTS),
    "hash": (lambda tf, x: tf.strings.to_hash_bucket_fast(x, 10**12), TEXTS),
    "strong hash": (lambda tf, x: tf.strings.to_hash_bucket_strong(x, 10**12, [3, -4]), TEXTS),
    "old hash": (lambda tf, x: tf.string_to_hash_bucket(x, 10**12), TEXTS),
    "hash of long": (lambda tf, x: tf.strings.to_hash_bucket_fast(x, 10**12), texts(200, 400)),
    "decoded": (lambda tf, x: rows(*tf.strings.unicode_decode_with_offsets(x, "UTF-8")), TEXTS),
    "damaged decoded": (
        lambda tf, x: rows(*tf.strings.unicode_decode_with_offsets(x, "UTF-8")),
        np.concatenate([TEXTS, DAMAGED]),
    ),
    "nothing decoded": (
        lambda tf, x: rows(*tf.strings.unicode_decode_with_offsets(x, "UTF-8")),
        np.array([b"", b"", b"a", b""], object),
    ),
    "decoded without controls": (
        lambda tf, x: rows(tf.strings.unicode_decode(x, "UTF-8", replace_control_characters=True)),
        TEXTS,
    ),
    "UTF-16 decoded": (
        lambda tf, x: rows(
            *tf.strings.unicode_decode_with_offsets(
                tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"), "UTF-16-BE"
            )
        ),
        TEXTS,
    ),
    "UTF-32 decoded": (
        lambda tf, x: rows(
            *tf.strings.unicode_decode_with_offsets(
                tf.strings.unicode_transcode(x, "UTF-8", "UTF-32-BE"), "UTF-32-BE"
            )
        ),
        TEXTS,
    ),
    "encoded": (
        lambda tf, x: tf.strings.unicode_encode(tf.strings.unicode_decode(x, "UTF-8"), "UTF-16-BE"),
        TEXTS,
    ),
    "encoded, some wrong": (
        lambda tf, x: tf.strings.unicode_encode(
            tf.RaggedTensor.from_row_splits(x, tf.constant([0, 2, 2, 5], tf.int64)), "UTF-8"
        ),
        np.array([97, 0xD800, 0x10FFFF, 0x110000, 0xE4], np.int32),
    ),
}


def crossed(tf, x, numbers, places, *, hashed):
    """A matrix of strings, one of numbers, and a sparse one, with rows of no value."""
    few = tf.SparseTensor(places, tf.reshape(x, [-1])[: tf.shape(places)[0]], [40, 9])
    features = [x, few, numbers]
    return sparse(tf.sparse.cross_hashed(features, 997) if hashed else tf.sparse.cross(features))


ROWS = np.sort(RNG.integers(0, 40, 50))
PLACES = np.stack([ROWS, np.arange(50) - np.searchsorted(ROWS, ROWS)], 1)
NUMBERS = RNG.integers(-(2**40), 2**40, (40, 2))
CASES["crossed"] = (
    lambda *args: crossed(*args, hashed=False),
    *(TEXTS.reshape(40, 3), NUMBERS, PLACES),
)
CASES["crossed, one of each"] = (
    lambda tf, x, n: sparse(tf.sparse.cross_hashed([x, tf.reverse(x, [0]), n], 997)),
    *(TEXTS.reshape(120, 1), np.arange(120)[:, None]),
)
CASES["crossed, none"] = (
    lambda tf, x: sparse(tf.sparse.cross([x, x])),
    TEXTS[:0].reshape(0, 1),
)
CASES["crossed and hashed"] = (
    lambda *args: crossed(*args, hashed=True),
    *(TEXTS.reshape(40, 3), NUMBERS, PLACES),
)


def fetched(tf, build, values):
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [
            tf.placeholder(
                tf.string if value.dtype == object else tf.as_dtype(value.dtype),
                [None] * value.ndim,
            )
            for value in values
        ]
        results = session.run(build(tf, *fed), dict(zip(fed, values, strict=True)))
    return results if isinstance(results, list) else [results]


@pytest.mark.parametrize("name", CASES)
def test_the_values_are_the_same(name):
    build, *values = CASES[name]
    ours, theirs = fetched(runnel, build, values), fetched(reference, build, values)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


CSV_TYPES = [[0], [0.5], ["none"], np.array([7], np.int64), np.array([], np.float64)]


def lines(count: int, wrong: dict[int, str], third: str = "name %d") -> np.ndarray:
    made = np.empty(count, object)
    made[:] = [
        wrong.get(i, f"{i * 37 - 500},{i / 7!r},{third % i}, {i} ,{i:e}").encode()
        for i in range(count)
    ]
    return made


CSV = {
    "plain": (lines(80, {}), {}),
    "defaults": (lines(80, {i: f",,,,{i}" for i in range(0, 80, 3)}), {}),
    "another missing": (lines(80, {3: "NA,NA,NA,NA,1", 70: "1,2,,NA,1"}), {"na_value": "NA"}),
    "quoted": (lines(80, {}, '"a, %d ""b"""'), {}),
    "some quoted": (lines(80, {7: '"1","2","x\n,\r","4","5"', 9: '1,2,"",4,"6"'}), {}),
    "quotes as they are": (lines(80, {4: '1,2,"a,4,5'}), {"use_quote_delim": False}),
    "ends of lines": (lines(80, {4: "1,2,a,4,5\r\n", 9: "1,2,a,4,5\n"}), {}),
    "some columns": (lines(80, {}), {"select_cols": [0, 3]}),
    "some columns of few": (lines(80, {5: "1,2,3,4", 6: "1,2,3,4,5,6"}), {"select_cols": [0, 3]}),
    "another delimiter": (lines(80, {}), {"field_delim": "."}),
    "nothing": (lines(0, {}), {}),
    "no line": (lines(80, {5: ""}), {}),
    "too few": (lines(80, {5: "1,2,3,4"}), {}),
    "too many": (lines(80, {5: "1,2,3,4,5,6"}), {}),
    "as many in all": (lines(80, {5: "1,2,3,4", 6: "1,2,3,4,5,6"}), {}),
    "required": (lines(80, {5: "1,2,3,4,"}), {}),
    "no number": (lines(80, {5: "1x,2,3,4,5"}), {}),
    "underscores": (lines(80, {5: "1_0,2,3,4,5"}), {}),
    "too large": (lines(80, {5: "3000000000,2,3,4,5"}), {}),
    "a quote inside": (lines(80, {5: '1,2,a"b,4,5'}), {}),
    "an open quote": (lines(80, {5: '1,2,"ab,4,5'}), {}),
    "something behind a quote": (lines(80, {5: '1,2,"ab"c,4,5'}), {}),
}


@pytest.mark.parametrize("name", CSV)
def test_lines_of_values_are_the_same(name):
    records, options = CSV[name]
    types = [CSV_TYPES[i] for i in options.get("select_cols", range(5))]
    if name == "another delimiter":
        types = [["none"], ["none"], ["none"]]

    def build(tf, x):
        return tf.decode_csv(x, types, **options)

    results = []
    for tf in (runnel, reference):
        try:
            results.append([x.tolist() for x in fetched(tf, build, [records])])
        except tf.errors.InvalidArgumentError as error:
            results.append(error.message)
    ours, theirs = results
    assert isinstance(ours, str) == isinstance(theirs, str), results
    if isinstance(theirs, str):
        assert ours.splitlines()[0] in theirs
    else:
        assert ours == theirs
