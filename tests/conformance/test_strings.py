"""Functions on strings give what TensorFlow's give, and refuse what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_fetches

reference = pytest.importorskip("tensorflow").compat.v1

WORDS = ["", "a", " Some words\t", "äÖ x", "a,b,,c"]
RNG = np.random.default_rng(1)
TEXTS = [bytes(RNG.integers(97, 123, n).astype(np.uint8)) for n in RNG.integers(0, 300, 400)]

PROGRAMS = {
    "split": lambda tf: [
        tf.string_split(["hello world", "a b c"]),
        tf.string_split(["a|b", "|c"], "|", skip_empty=False),
        tf.strings.split(["a,b", "c"], sep=",", result_type="SparseTensor"),
        tf.strings.split([" a  b "], result_type="SparseTensor"),
    ],
    "characters": lambda tf: [
        tf.string_strip(WORDS),
        tf.strings.lower(WORDS),
        tf.strings.upper(WORDS, encoding="utf-8"),
        tf.strings.length(WORDS),
        tf.strings.length(WORDS, unit="UTF8_CHAR"),
        tf.substr(["hello", "world"], 1, 3),
    ],
    "joined": lambda tf: [
        tf.strings.join(["a", ["x", "y"]], "-"),
        tf.reduce_join([["a", "b"], ["c", "d"]]),
        tf.reduce_join([["a", "b"], ["c", "d"]], 0, separator=" "),
        tf.reduce_join([["a", "b"], ["c", "d"]], [1], keep_dims=True),
        tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 3),
    ],
    "expressions": lambda tf: [
        tf.regex_replace(WORDS, "[aeiou]", "_"),
        tf.strings.regex_replace(WORDS, tf.constant("(\\w)"), "<\\1>", replace_global=False),
        tf.strings.regex_full_match(WORDS, ".*[ac]"),
        tf.strings.regex_full_match(WORDS, tf.constant("")),
    ],
    "numbers": lambda tf: [
        tf.string_to_number(["1", "2.5"]),
        tf.string_to_number(["1", "-2"], tf.int64),
        tf.string_to_number([" 0" + "0" * 5000 + "12 ", "-007"], tf.int64),
        tf.string_to_number(["1.", " .5 ", "-1.5e+3", "2e3", "0." + "3" * 5000], tf.float64),
        tf.as_string([1.5, 1e20]),
        tf.as_string([1, 2]),
        tf.as_string(3.14159, precision=3),
        tf.as_string(np.array([np.inf, -np.inf], np.float32), shortest=True),
    ],
    "base64": lambda tf: [
        tf.encode_base64(TEXTS[:20]),
        tf.decode_base64(tf.encode_base64(TEXTS[:20], pad=True)),
    ],
    "hashes": lambda tf: [
        tf.string_to_hash_bucket(TEXTS, 10**9),
        tf.string_to_hash_bucket_fast(TEXTS, 10**9),
        tf.string_to_hash_bucket_strong(TEXTS, 10**9, [1, 2]),
        tf.strings.to_hash_bucket_fast([["a"], ["b"]], 7),
    ],
    "transcode": lambda tf: tf.strings.unicode_transcode(WORDS, "UTF-8", "UTF-16-BE"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_values_are_the_same(name):
    assert_same_fetches(PROGRAMS[name])


REFUSED = {
    "no number": lambda tf: tf.string_to_number(["x"]),
    "no number behind many digits": lambda tf: tf.string_to_number(["1" * 100_000 + "x"]),
    "an integer of many digits": lambda tf: tf.string_to_number(["1" * 5000], tf.int64),
    "number and more": lambda tf: tf.string_to_number(["1 2"], tf.int32),
    "hexadecimal": lambda tf: tf.string_to_number(["1_000"], tf.int32),
    "beyond the string": lambda tf: tf.substr(["abc"], 4, 1),
    "other shapes": lambda tf: tf.substr(["abc"], [1], 1),
    "open group": lambda tf: tf.strings.regex_full_match(["a"], tf.constant("(")),
    "base64": lambda tf: tf.decode_base64(["+a"]),
    "precision of integers": lambda tf: tf.as_string([1], precision=2),
    "segments": lambda tf: tf.strings.unsorted_segment_join(["a"], [3], 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, reference):
        refusal = pytest.raises((tf.errors.InvalidArgumentError, ValueError))
        with tf.Graph().as_default(), tf.Session() as sess, refusal:
            sess.run(REFUSED[name](tf))


def test_the_script_of_every_character_is_the_same():
    characters = np.arange(-2, 0x110002, dtype=np.int32)
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            found.append(sess.run(tf.strings.unicode_script(characters)))
    assert found[0].dtype == found[1].dtype
    assert np.array_equal(*found)
