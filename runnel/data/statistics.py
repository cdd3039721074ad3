"""``tf.data.experimental.StatsAggregator``: what datasets take, for summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.data.dataset import Dataset
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.ops.data import statistics_ops


class StatsAggregator:
    """Gathers what the elements of datasets take, over all iterators that are told to.

    Example:
        >>> aggregator = tf.data.experimental.StatsAggregator()
        >>> options = tf.data.Options()
        >>> options.experimental_stats.aggregator = aggregator
        >>> dataset = dataset.apply(tf.data.experimental.latency_stats("decoding"))
        >>> dataset = dataset.with_options(options)
        >>> tf.add_to_collection(tf.GraphKeys.SUMMARIES, aggregator.get_summary())
    """

    def __init__(self) -> None:
        self._resource = statistics_ops.aggregator_op()

    def get_summary(self) -> Tensor:
        """A string: a serialized ``Summary`` of what was gathered so far."""
        return statistics_ops.summary_op(self._resource)


def latency_stats(tag: Any) -> Callable[[Dataset], Dataset]:
    """The same elements; how many microseconds each took is gathered under ``tag``."""
    text = convert_to_tensor(tag, dtypes.string)
    return lambda dataset: dataset._with(statistics_ops.latency_op, text)


def bytes_produced_stats(tag: Any) -> Callable[[Dataset], Dataset]:
    """The same elements; how many bytes each has is gathered under ``tag``."""
    text = convert_to_tensor(tag, dtypes.string)
    return lambda dataset: dataset._with(statistics_ops.bytes_op, text)


def set_stats_aggregator(
    stats_aggregator: StatsAggregator, prefix: Any = "", counter_prefix: Any = ""
) -> Callable[[Dataset], Dataset]:
    """The same elements; what they take goes to ``stats_aggregator``, under ``prefix::name``."""
    texts = [convert_to_tensor(one, dtypes.string) for one in (prefix, counter_prefix)]
    return lambda dataset: dataset._with(
        statistics_ops.record_op, stats_aggregator._resource, *texts
    )
