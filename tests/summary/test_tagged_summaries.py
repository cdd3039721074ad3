"""A program of TensorFlow 0.12 writes its summaries under the tags that it gives."""

import numpy as np
import pytest

import runnel as tf


def values_of(summary):
    return {value.tag: value for value in tf.Summary.FromString(summary).value}


def test_a_program_of_0_12(tmp_path):
    x = tf.placeholder(tf.float32, [])
    with tf.name_scope("inner"):
        tf.scalar_summary("loss", x)
        tf.scalar_summary(["a", "b"], tf.stack([x, x + 1]), name="pair")
        tf.histogram_summary("weights", [1.0, 2.0, 2.0])
        tf.image_summary("digits", np.ones([2, 4, 4, 1], np.float32), max_images=1)
        tf.audio_summary("speech", np.zeros([1, 8], np.float32), 8000, max_outputs=1)
    merged = tf.merge_all_summaries()
    writer = tf.train.SummaryWriter(str(tmp_path), tf.get_default_graph())
    with tf.Session() as sess:
        writer.add_summary(sess.run(merged, {x: 2.5}), 7)
    writer.close()
    (path,) = tmp_path.iterdir()
    events = [event for event in tf.train.summary_iterator(str(path)) if event.summary.value]
    assert [event.step for event in events] == [7]
    found = {value.tag: value for value in events[0].summary.value}
    assert (found["loss"].simple_value, found["b"].simple_value) == (2.5, 3.5)
    assert found["weights"].histo.num == 3
    assert found["digits/image"].image.height == 4
    assert found["speech/audio"].audio.sample_rate == 8000
    assert tf.get_default_graph().get_operation_by_name("inner/pair").type == "ScalarSummary"


def test_collections_and_merging():
    a = tf.scalar_summary("a", 1.0, collections=["mine"])
    assert tf.merge_all_summaries() is None
    assert tf.get_collection("mine") == [a]
    both = tf.merge_summary([a, tf.scalar_summary("b", 2.0)])
    with tf.Session() as sess:
        assert values_of(sess.run(both)).keys() == {"a", "b"}
        assert values_of(sess.run(tf.merge_all_summaries("mine"))).keys() == {"a"}
    assert tf.train.SummaryWriterCache is tf.summary.FileWriterCache
    assert tf.summary.initialize() is None


def test_tags_must_fit_values():
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
        sess.run(tf.scalar_summary(["a", "b"], 1.0))
