"""Summaries in a graph: what they say where TensorFlow is not at hand, and in either tier."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from PIL import Image

import runnel as tf
from runnel.ops.summaries.histogram_summary import bucket_limits, buckets_of
from tests.both_tiers import run_both


def values_of(summary, feed=None):
    return list(tf.Summary.FromString(run_both(summary, feed)).value)


def test_a_training_loop_is_summarized_in_both_tiers():
    x = tf.placeholder(tf.float32, [None])
    tf.summary.scalar("average", tf.reduce_mean(x * 2.0))
    tf.summary.histogram("x", x)
    mean, histogram = values_of(tf.summary.merge_all(), {x: [1.0, 2.0, 3.0]})
    assert (mean.tag, mean.simple_value) == ("average", 4.0)
    assert histogram.histo.num == 3 and histogram.histo.sum == 6.0


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_is_summarized_where_the_summary_stands(use_resource):
    with tf.variable_scope("", use_resource=use_resource):
        v = tf.get_variable("v", initializer=[1.0, 2.0])
    before = tf.summary.histogram("before", v)
    with tf.control_dependencies([before]):
        update = tf.assign_add(v, [10.0, 10.0])
    with tf.control_dependencies([update]):
        after = tf.summary.scalar("after", tf.reduce_sum(v))
    merged = tf.summary.merge([before, after])
    first, second = tf.Summary.FromString(run_both(merged, init=v.initializer)).value
    assert (first.histo.sum, second.simple_value) == (3.0, 23.0)


def test_the_buckets_are_those_of_a_search():
    rng = np.random.default_rng(0)
    limits = bucket_limits()
    values = np.concatenate(
        [
            limits[:-1],
            np.nextafter(limits[1:], -np.inf),
            np.nextafter(limits[:-1], np.inf),
            rng.normal(size=10_000),
            np.exp(rng.normal(size=10_000) * 100) * rng.choice([-1, 1], 10_000),
            [5e-324, -5e-324, 0.0, -0.0],
        ]
    )
    np.testing.assert_array_equal(buckets_of(values), np.searchsorted(limits, values, side="right"))
    assert buckets_of(limits[-1:]) == len(limits) - 1  # the largest number has no larger limit


def test_a_histogram_counts_every_number():
    values = np.random.default_rng(0).normal(size=1000)
    (value,) = values_of(tf.summary.histogram("h", tf.constant(values)))
    histo = value.histo
    assert sum(histo.bucket) == histo.num == 1000
    assert (histo.min, histo.max) == (values.min(), values.max())
    edges = [-np.inf, *histo.bucket_limit]
    counts, _ = np.histogram(values, edges)
    assert list(histo.bucket) == list(counts)


@pytest.mark.parametrize("bad,message", [(np.nan, "Nan in"), (np.inf, "Infinity in")])
def test_a_histogram_of_what_is_not_finite_names_the_operation(bad, message):
    x = tf.placeholder(tf.float32, [2])
    summary = tf.summary.histogram("weights", x)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=message) as error,
    ):
        sess.run(summary, {x: [1.0, bad]})
    assert error.value.op is summary.op
    assert "test_summaries.py" in str(error.value)


def test_pixels_that_are_not_finite_are_red():
    image = np.ones((1, 2, 2, 3), np.float32)
    image[0, 0, 1, 2] = np.nan
    (value,) = values_of(tf.summary.image("i", tf.constant(image), max_outputs=1))
    assert value.tag == "i/image"
    with Image.open(io.BytesIO(value.image.encoded_image_string)) as picture:
        pixels = np.asarray(picture)
    assert pixels[0, 1].tolist() == [255, 0, 0]
    assert (pixels[1] == 255).all() and (pixels[0, 0] == 255).all()


def test_an_image_without_pixels_is_refused():
    x = tf.placeholder(tf.float32, [1, None, 2, 1])
    summary = tf.summary.image("i", x)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="no pixel"):
        sess.run(summary, {x: np.zeros((1, 0, 2, 1))})


def test_a_clip_is_a_file_that_others_read():
    sound = np.array([[[0.5, -0.5], [1.0, -1.0], [0.0, 0.25]]], np.float32)
    (value,) = values_of(tf.summary.audio("s", tf.constant(sound), 8000))
    assert value.tag == "s/audio/0"
    with wave.open(io.BytesIO(value.audio.encoded_audio_string)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (2, 8000, 3)
        samples = np.frombuffer(file.readframes(3), "<i2").reshape(3, 2)
    assert samples.tolist() == [[16384, -16384], [32767, -32768], [0, 8192]]


def test_a_sample_rate_may_be_a_tensor():
    rate = tf.placeholder(tf.float32, [])
    summary = tf.summary.audio("s", tf.zeros([1, 3]), rate)
    (value,) = values_of(summary, {rate: 44100.0})
    assert value.audio.sample_rate == 44100
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="sample_rate"):
        sess.run(summary, {rate: -1.0})


def test_metadata_that_the_caller_gave_is_not_changed():
    metadata = tf.SummaryMetadata(display_name="mine")
    summary = tf.summary.tensor_summary(
        "t", tf.constant([1.0]), "about", summary_metadata=metadata, display_name="other"
    )
    (value,) = values_of(summary)
    assert value.metadata.display_name == "other"
    assert value.metadata.summary_description == "about"
    assert metadata == tf.SummaryMetadata(display_name="mine")


def test_a_summary_in_a_branch_and_in_a_loop():
    p = tf.placeholder(tf.bool, [])
    chosen = tf.cond(p, lambda: tf.summary.scalar("a", 1.0), lambda: tf.summary.scalar("b", 2.0))
    for taken, tag in ((True, "cond/a"), (False, "cond/b")):
        (value,) = values_of(chosen, {p: taken})
        assert value.tag == tag
    last = tf.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, tf.summary.scalar("i", i)),
        [tf.constant(0), tf.constant("")],
    )[1]
    (value,) = values_of(last)
    assert value.simple_value == 2.0
