"""What elements take, in time and bytes, as TensorFlow's ``StatsAggregator`` shows it."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import runnel as tf

Dataset, experimental = tf.data.Dataset, tf.data.experimental


def gathered(make, most=None, prefix="", edges=False, transform=False):
    """The summary of what a dataset's elements take: histograms, and numbers."""
    with tf.Graph().as_default():
        aggregator = experimental.StatsAggregator()
        dataset = make()
        if transform:
            dataset = dataset.apply(experimental.set_stats_aggregator(aggregator, prefix))
        else:
            options = tf.data.Options()
            options.experimental_stats.aggregator = aggregator
            options.experimental_stats.prefix = prefix
            options.experimental_stats.latency_all_edges = edges
            dataset = dataset.with_options(options)
        iterator = dataset.make_initializable_iterator()
        element = iterator.get_next()
        summary = aggregator.get_summary()
        with tf.Session() as sess:
            sess.run(iterator.initializer)
            with contextlib.suppress(tf.errors.OutOfRangeError):
                for _ in range(100 if most is None else most):
                    sess.run(element)
            found = tf.Summary.FromString(sess.run(summary))
    return {
        value.tag: value.histo if value.HasField("histo") else value.simple_value
        for value in found.value
    }


@pytest.mark.parametrize("transform", [False, True])
def test_bytes_are_counted(transform):
    def make():
        numbers = Dataset.range(10).map(lambda n: tf.fill([n], n))
        return numbers.apply(experimental.bytes_produced_stats("bytes"))

    histogram = gathered(make, transform=transform)["bytes"]
    sizes = 8.0 * np.arange(10)
    assert (histogram.num, histogram.min, histogram.max) == (10, 0, 72)
    assert (histogram.sum, histogram.sum_squares) == (sizes.sum(), (sizes**2).sum())
    assert sum(histogram.bucket) == 10


def test_a_string_counts_its_characters_and_a_pointer():
    def make():
        pairs = Dataset.from_tensor_slices((["a", "bcd"], np.int32([1, 2])))
        return pairs.apply(experimental.bytes_produced_stats("bytes"))

    assert gathered(make)["bytes"].sum == (8 + 1 + 4) + (8 + 3 + 4)


@pytest.mark.parametrize("most", [0, 3, None])
def test_latencies_are_those_of_elements(most):
    def make():
        return Dataset.range(5).apply(experimental.latency_stats("time"))

    found = gathered(make, most)
    assert (found["time"].num if most != 0 else len(found)) == {0: 0, 3: 3, None: 5}[most]


def test_elements_that_are_made_together_count_one_by_one():
    def make():
        doubled = Dataset.range(64).map(lambda n: 2 * n)
        doubled = doubled.apply(experimental.latency_stats("time"))
        return doubled.apply(experimental.bytes_produced_stats("bytes")).batch(16)

    found = gathered(make)
    assert found["time"].num == found["bytes"].num == 64
    assert found["bytes"].sum == 64 * 8


def test_names_have_the_prefix():
    found = gathered(
        lambda: Dataset.range(4).apply(experimental.latency_stats("time")), prefix="here"
    )
    assert list(found) == ["here::time"]


def test_filters_tell_how_many_they_drop_and_buffers_how_full_they_are():
    def make():
        kept = Dataset.range(10).filter(lambda n: n % 3 > 0)
        return kept.prefetch(3)

    found = gathered(make)
    assert found["FilterDataset::filtered_elements"] == 6
    assert found["FilterDataset::dropped_elements"] == 4
    assert found["PrefetchDataset::buffer_capacity"] == 3
    assert found["PrefetchDataset::buffer_utilization"].num == 6
    assert found["PrefetchDataset::buffer_utilization"].max <= 1


def test_all_stages_are_timed_if_asked():
    found = gathered(lambda: Dataset.range(8).map(lambda n: n + 1).batch(2), edges=True)
    counts = {tag.partition("::")[2].split(" ")[0]: found[tag].num for tag in found}
    assert counts == {"numbers": 8, "map": 8, "batch": 4}


def test_without_an_aggregator_nothing_is_gathered():
    def make():
        return Dataset.range(4).apply(experimental.latency_stats("time"))

    with tf.Graph().as_default(), tf.Session() as sess:
        element = make().make_one_shot_iterator().get_next()
        assert [sess.run(element) for _ in range(4)] == [0, 1, 2, 3]
    assert gathered(lambda: Dataset.range(4)) == {}
