"""Parsing gives what TensorFlow's gives, and refuses what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import runnel
from tests.conformance.op_examples.parsing import MESSAGES, SEQUENCES, example, feature
from tests.conformance.same_fetches import assert_same_fetches

reference = pytest.importorskip("tensorflow").compat.v1


def wanted(tf):
    return {
        "a": tf.FixedLenFeature([2], tf.float32),
        "b": tf.VarLenFeature(tf.int64),
        "c": tf.VarLenFeature(tf.string),
        "missing": tf.FixedLenFeature([], tf.string, default_value="none"),
        "other": tf.FixedLenFeature([2, 1], tf.int64, default_value=[[1], [2]]),
        "d": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=-1.0),
        "e": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }


POINTS = [
    example(
        x=feature(3, 0), y=feature(1, 2), v=feature(1.5, 2.5), name=feature(b"p")
    ).SerializeToString(),
    example(name=feature(b"q")).SerializeToString(),
]


def points(tf):
    return {
        "one": tf.SparseFeature("x", "v", tf.float32, 5),
        "two": tf.SparseFeature(["x", "y"], "v", tf.float32, [5, 4]),
        "name": tf.FixedLenFeature([], tf.string),
    }


def lists(tf):
    context = {
        "id": tf.FixedLenFeature([], tf.int64),
        "tags": tf.VarLenFeature(tf.string),
    }
    sequence = {
        "words": tf.VarLenFeature(tf.int64),
        "points": tf.FixedLenSequenceFeature([2], tf.float32),
        "absent": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }
    return context, sequence


PROGRAMS = {
    "examples": lambda tf: tf.parse_example(MESSAGES, wanted(tf)),
    "no examples": lambda tf: tf.parse_example(np.array([], object), wanted(tf)),
    "single": lambda tf: [tf.parse_single_example(m, wanted(tf)) for m in MESSAGES],
    "sparse features": lambda tf: tf.parse_example(POINTS, points(tf)),
    "single sparse": lambda tf: tf.io.parse_single_example(POINTS[0], points(tf)),
    "sequences": lambda tf: [tf.parse_single_sequence_example(m, *lists(tf)) for m in SEQUENCES],
    "sequences at once": lambda tf: tf.io.parse_sequence_example(SEQUENCES, *lists(tf)),
    "csv": lambda tf: tf.decode_csv(["1,a,2.5", "2,,7"], [[0], ["x"], [1.0]]),
    "raw": lambda tf: [
        tf.decode_raw(["abcd", "efgh"], tf.uint8),
        tf.decode_raw("abcd", tf.float16, little_endian=False),
    ],
    "tensors": lambda tf: [
        tf.parse_tensor(tf.serialize_tensor(tf.constant(value)), kind)
        for value, kind in (([1.5, 2], tf.float32), ([[True]], tf.bool), (["a", ""], tf.string))
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_values_are_the_same(name):
    assert_same_fetches(PROGRAMS[name])


def parsed(*keys_and_kinds):
    return lambda tf: tf.parse_example(MESSAGES, {key: kind(tf) for key, kind in keys_and_kinds})


REFUSED = {
    "missing": parsed(("nothing", lambda tf: tf.FixedLenFeature([1], tf.float32))),
    "another type": parsed(("a", lambda tf: tf.FixedLenFeature([2], tf.int64))),
    "another size": parsed(("a", lambda tf: tf.FixedLenFeature([3], tf.float32))),
    "sparse of another type": parsed(("b", lambda tf: tf.VarLenFeature(tf.string))),
    "uneven sequence": parsed(
        ("d", lambda tf: tf.FixedLenSequenceFeature([3], tf.float32, allow_missing=True))
    ),
    "no message": lambda tf: tf.parse_example(["\x0a\x05abc"], {"a": tf.VarLenFeature(tf.int64)}),
    "fields missing": lambda tf: tf.decode_csv(["1,2"], [[0], [0], [0]]),
    "required": lambda tf: tf.decode_csv([",2"], [tf.constant([], tf.int32), [0]]),
    "no number": lambda tf: tf.decode_csv(["x"], [[0]]),
    "too large": lambda tf: tf.decode_csv(["3000000000"], [[0]]),
    "open quote": lambda tf: tf.decode_csv(['"a'], [[""]]),
    "quote inside": lambda tf: tf.decode_csv(['a"b'], [[""]]),
    "uneven bytes": lambda tf: tf.decode_raw(["abc"], tf.int16),
    "other lengths": lambda tf: tf.decode_raw(["ab", "abcd"], tf.int16),
    "other type": lambda tf: tf.parse_tensor(tf.serialize_tensor([1.0]), tf.int32),
    "no tensor": lambda tf: tf.parse_tensor("nonsense", tf.int32),
    "no json": lambda tf: tf.decode_json_example(["{"]),
    "missing list": lambda tf: tf.parse_single_sequence_example(
        SEQUENCES[0], None, {"zzz": tf.FixedLenSequenceFeature([], tf.int64)}
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            fetches = REFUSED[name](tf)
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(fetches)


BUILT = {
    "no features": lambda tf: tf.parse_example(MESSAGES, {}),
    "no type": lambda tf: tf.parse_example(MESSAGES, {"a": tf.VarLenFeature(None)}),
    "sequence without default": lambda tf: tf.parse_example(
        MESSAGES, {"a": tf.FixedLenSequenceFeature([], tf.int64)}
    ),
    "columns in disorder": lambda tf: tf.decode_csv(["1,2"], [[0], [0]], select_cols=[1, 0]),
}


@pytest.mark.parametrize("name", BUILT)
def test_both_refuse_to_build(name):
    for tf in (runnel, reference):
        with tf.Graph().as_default(), pytest.raises(ValueError):
            BUILT[name](tf)
