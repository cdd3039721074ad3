"""What datasets take, gathered for summaries, and the rewrites that TensorFlow makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.registry import register_op
from runnel.ops.data.dataset_ops import TYPES, dataset_op, pipeline_of, text_of
from runnel.ops.queues.queue_ops import denoted
from runnel.ops.summaries.histogram_summary import HistogramOfValues
from runnel.ops.summaries.serialized import serialized, summary_class
from runnel.pipelines.sources import scalar
from runnel.pipelines.statistics import BytesProduced, Latency, Optimized, Recorded, Statistics

_INPUT = "input_dataset: variant"
optimize_op = dataset_op(
    "OptimizeDataset",
    f"{_INPUT}, optimizations: string",
    [*TYPES, "optimization_configs: list(string) = []"],
)
latency_op = dataset_op("LatencyStatsDataset", f"{_INPUT}, tag: string", TYPES)
bytes_op = dataset_op("BytesProducedStatsDataset", f"{_INPUT}, tag: string", TYPES)
record_op = dataset_op(
    "SetStatsAggregatorDataset",
    f"{_INPUT}, stats_aggregator: resource, tag: string, counter_prefix: string",
    TYPES,
)
aggregator_op = register_op(
    "StatsAggregatorHandle",
    inputs="",
    outputs="handle: resource",
    attrs=["container: string = ''", "shared_name: string = ''"],
    blocking=True,
    differentiable=False,
)
summary_op = register_op(
    "StatsAggregatorSummary",
    inputs="iterator: resource",
    outputs="summary: string",
    blocking=True,
    differentiable=False,
)
aggregator_op.shape(lambda: ())
summary_op.shape(lambda aggregator: ())


@optimize_op.kernel
def _(xp, source, names):
    wanted = {bytes(name) for name in np.asarray(names, object).reshape(-1)}
    return scalar(
        Optimized(
            pipeline_of(source),
            joins_shuffles=b"shuffle_and_repeat_fusion" in wanted,
            times_stages=b"latency_all_edges" in wanted,
        )
    )


@latency_op.kernel
def _(xp, source, tag):
    return scalar(Latency(pipeline_of(source), text_of(tag)))


@bytes_op.kernel
def _(xp, source, tag):
    return scalar(BytesProduced(pipeline_of(source), text_of(tag)))


@record_op.kernel
def _(xp, source, aggregator, prefix, counter_prefix):
    statistics = denoted(aggregator, Statistics)
    return scalar(Recorded(pipeline_of(source), statistics, text_of(prefix)))


@aggregator_op.kernel
def _(xp, *, waiter, operation):
    made = waiter.resources.handle(
        operation, Statistics, lambda name: Statistics(HistogramOfValues)
    )
    return (made,)


@summary_op.kernel
def _(xp, aggregator, *, waiter):
    summary = summary_class()()

    def show(name: str, value: Any) -> None:
        value.fill(summary.value.add(tag=name).histo)

    def show_scalar(name: str, value: float) -> None:
        summary.value.add(tag=name, simple_value=value)

    denoted(aggregator, Statistics).show(show, show_scalar)
    return (serialized(summary),)
