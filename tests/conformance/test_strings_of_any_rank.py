"""Strings of any rank, and ragged ones, are split and put together as TensorFlow does."""

from __future__ import annotations

import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

MATRIX = [["a b", "c"], ["", "d  e f"]]
CUBE = [[["a b"], ["c,d"]], [["e"], [" f g h"]]]


def ragged(tf):
    return tf.ragged.constant([["a b", "c,d e"], [], ["f"]])


def deep(tf):
    return tf.ragged.constant([[["a b"], []], [], [["c d e", "f"], ["", "g"]]])


def uniform(tf):
    """A ragged tensor whose rows are vectors of two."""
    return tf.RaggedTensor.from_row_splits(tf.constant([["a b", "c"], ["d", "e f g"]]), [0, 2, 2])


GIVEN = {
    "one": lambda tf: tf.constant("a b c"),
    "vector": lambda tf: tf.constant(["a b", "", "c"]),
    "matrix": lambda tf: tf.constant(MATRIX),
    "cube": lambda tf: tf.constant(CUBE),
    "ragged": ragged,
    "deep": deep,
    "uniform": uniform,
}


def values(tf, build):
    """A ragged result as the lists that it stands for."""
    with tf.Graph().as_default(), tf.Session() as sess:
        found = sess.run(build(tf))
    return found.to_list() if hasattr(found, "to_list") else found


def assert_same(build):
    ours, theirs = values(runnel, build), values(reference, build)
    if isinstance(theirs, list):
        assert ours == theirs
    else:
        assert_same_values(ours, theirs)


@pytest.mark.parametrize("sep", [None, ","])
@pytest.mark.parametrize("form", ["SparseTensor", "RaggedTensor"])
@pytest.mark.parametrize("given", GIVEN)
def test_split(given, form, sep):
    assert_same(lambda tf: tf.strings.split(GIVEN[given](tf), sep, result_type=form))


@pytest.mark.parametrize("given", GIVEN)
def test_bytes(given):
    assert_same(lambda tf: tf.strings.bytes_split(GIVEN[given](tf)))


NGRAMS = {
    "two": {"ngram_width": 2},
    "several": {"ngram_width": [1, 3]},
    "padded": {"ngram_width": 3, "pad_values": ("<", ">"), "separator": "|"},
    "padded by one": {"ngram_width": 3, "pad_values": "-", "padding_width": 1},
    "padded little": {"ngram_width": [1, 2], "pad_values": "-", "padding_width": 5},
    "short rows": {"ngram_width": 3, "preserve_short_sequences": True},
    "short padded rows": {
        "ngram_width": 6,
        "pad_values": "-",
        "padding_width": 1,
        "preserve_short_sequences": True,
    },
}


@pytest.mark.parametrize("how", NGRAMS)
@pytest.mark.parametrize("given", ["vector", "matrix", "cube", "ragged", "deep"])
def test_ngrams(given, how):
    assert_same(lambda tf: tf.strings.ngrams(GIVEN[given](tf), **NGRAMS[how]))


@pytest.mark.parametrize(
    "how",
    [
        {"ngram_width": 0},
        {"ngram_width": 2, "padding_width": 1},
        {"ngram_width": 2, "pad_values": "-", "padding_width": 0},
    ],
)
def test_ngrams_are_refused(how):
    for tf in (runnel, reference):
        with tf.Graph().as_default(), pytest.raises(ValueError):
            tf.strings.ngrams(tf.constant(["a", "b"]), **how)


def test_text_with_values():
    assert_same(
        lambda tf: tf.strings.format("{} and {}", [tf.constant([1, 2, 3, 4, 5, 6, 7]), "x"])
    )
