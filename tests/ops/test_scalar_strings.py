"""A single string is a tensor's value, whichever operation took it out of several."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

TEXTS = ["a b", "c", "d e"]


def scalars(texts, place):
    """A string out of ``texts``, by the operations that can take one out."""
    return {
        "gather": tf.gather(texts, place),
        "gather_nd": tf.gather_nd(texts, [place]),
        "slice": texts[place],
        "unstack": tf.unstack(tf.reshape(texts, [3]))[1],
        "array": tf.TensorArray(tf.string, 3).unstack(texts).read(place),
        "array, one by one": tf.TensorArray(tf.string, 3).write(place, texts[place]).read(place),
        "reduce_join": tf.reduce_join(texts, 0),
        "cond": tf.cond(place > 0, lambda: texts[place], lambda: texts[0]),
        "where": tf.where(place > 0, texts[1], texts[0]),
        "map_fn": tf.map_fn(lambda text: text, texts)[1],
        "foldl": tf.foldl(lambda text, more: text + more, texts),
        "partition": tf.reshape(tf.dynamic_partition(texts, [0, 1, 0], 2)[1], []),
        "unique": tf.unique(texts)[0][1],
        "shuffle": tf.random_shuffle(texts)[place],
        "py_func": tf.py_func(lambda some: some[1], [texts], tf.string),
        "substr": tf.substr(texts[place], 0, 1),
        "parse": tf.parse_single_example(
            tf.train.Example().SerializeToString(), {"a": tf.FixedLenFeature([], tf.string, "d")}
        )["a"],
    }


with tf.Graph().as_default():
    NAMES = list(scalars(tf.constant(TEXTS), tf.constant(1)))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_taken_by_others(name):
    texts, place = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int32, [])
    text = scalars(texts, place)[name]
    fetches = [
        text,
        tf.shape(text),
        tf.stack([text, text]),
        tf.expand_dims(text, 0),
        tf.string_split([text], " ").values,
        tf.strings.length(text),
    ]
    with tf.Session() as sess:
        one, shape, both, row, words, length = sess.run(fetches, {texts: TEXTS, place: 1})
    assert isinstance(one, bytes)
    assert shape.tolist() == []
    assert both.tolist() == [one, one]
    assert row.tolist() == [one]
    assert words.tolist() == one.split(b" ")
    assert length == len(one)
    assert length.dtype == np.int32
