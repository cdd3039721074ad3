"""Elements of shuffled and repeated datasets come in the order of TensorFlow 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import runnel as tf
from tests.shuffle_orders import BEGINNINGS, CASES, elements

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "shuffle_orders.json").read_text())


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("case", CASES)
def test_the_order_is_that_of_tensorflow(case, beginning):
    assert elements(tf, case, beginning) == RECORDED["orders"][beginning][case]


@pytest.mark.parametrize("case", CASES)
def test_so_it_is_where_the_graph_has_a_seed(case):
    assert elements(tf, case, "initializable", 7) == RECORDED["of a graph with a seed"][case]


@pytest.mark.parametrize("taken", [3, 7, 10])
def test_an_iterator_that_was_saved_goes_on_in_that_order(taken, tmp_path):
    def built():
        iterator = tf.data.make_initializable_iterator(CASES["repeated"](tf))
        position = tf.data.experimental.make_saveable_from_iterator(iterator)
        return iterator, iterator.get_next(), tf.train.Saver({"position": position})

    with tf.Graph().as_default(), tf.Session() as sess:
        iterator, element, saver = built()
        sess.run(iterator.initializer)
        for _ in range(taken):
            sess.run(element)
        path = saver.save(sess, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as sess:
        iterator, element, saver = built()
        saver.restore(sess, path)
        rest = [sess.run(element).tolist() for _ in range(21 - taken)]
    assert rest == RECORDED["orders"]["initializable"]["repeated"][taken:]
