"""Datasets as TensorFlow writes them where runnel has another operation, or needs none."""

from __future__ import annotations

from runnel.ops.data.dataset_ops import METADATA, TYPES, dataset_op, number, pipeline_of
from runnel.ops.data.function_ops import bound_function, most_parallel
from runnel.pipelines.batching import Batch
from runnel.pipelines.flattening import Interleave
from runnel.pipelines.mapping import ParallelMap
from runnel.pipelines.sources import scalar
from runnel.threads import usable_cores

_INPUT = "input_dataset: variant"
_CAPTURES = "Targuments: list(type) >= 0"
_ORDER = "deterministic: string = 'default'"

parallel_map_v2_op = dataset_op(
    "ParallelMapDatasetV2",
    f"{_INPUT}, other_arguments: Targuments, num_parallel_calls: int64",
    [
        "f: func",
        _CAPTURES,
        *TYPES,
        "use_inter_op_parallelism: bool = true",
        _ORDER,
        "preserve_cardinality: bool = false",
        "use_unbounded_threadpool: bool = false",
        METADATA,
    ],
    blocking=True,
)
_TURNS = f"{_INPUT}, other_arguments: Targuments, cycle_length: int64, block_length: int64"
parallel_interleave_v3_op = dataset_op(
    "ParallelInterleaveDatasetV3",
    f"{_TURNS}, num_parallel_calls: int64",
    ["f: func", _ORDER, _CAPTURES, *TYPES, METADATA],
    blocking=True,
)
parallel_interleave_v4_op = dataset_op(
    "ParallelInterleaveDatasetV4",
    f"{_TURNS}, buffer_output_elements: int64, prefetch_input_elements: int64, "
    "num_parallel_calls: int64",
    ["f: func", _ORDER, _CAPTURES, *TYPES, METADATA],
    blocking=True,
)
parallel_batch_op = dataset_op(
    "ParallelBatchDataset",
    f"{_INPUT}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    ["parallel_copy: bool = false", *TYPES, _ORDER, METADATA],
)
map_and_batch_op = dataset_op(
    "MapAndBatchDataset",
    f"{_INPUT}, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
    "drop_remainder: bool",
    ["f: func", _CAPTURES, *TYPES, "preserve_cardinality: bool = false", METADATA],
    blocking=True,
)
# How TensorFlow computes a dataset, which is not what its elements are.
options_op = dataset_op("OptionsDataset", _INPUT, ["serialized_options: string", *TYPES, METADATA])
model_op = dataset_op(
    "ModelDataset",
    _INPUT,
    ["algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0", *TYPES],
)
threads_op = dataset_op("PrivateThreadPoolDataset", f"{_INPUT}, num_threads: int64", TYPES)
parallelism_op = dataset_op(
    "MaxIntraOpParallelismDataset", f"{_INPUT}, max_intra_op_parallelism: int64", TYPES
)


def _is_sloppy(deterministic: str | bytes) -> bool:
    """Whether elements may come in another order: ``default`` leaves it to options."""
    return deterministic in ("false", b"false")


@parallel_map_v2_op.kernel
def _(xp, source, captured, calls, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    return (scalar(ParallelMap(pipeline_of(source), function, most_parallel(number(calls)))),)


def _interleaved(waiter, operation, f, source, captured, turns, calls, deterministic):
    function = bound_function(waiter, operation, f, captured)
    cycle, block = most_parallel(number(turns[0])), number(turns[1])
    chosen = number(calls)
    chosen = min(usable_cores(), cycle) if chosen < 0 else min(chosen, cycle)
    sloppy = _is_sloppy(deterministic)
    made = Interleave(pipeline_of(source), function, cycle, block, (chosen, block), sloppy)
    return (scalar(made),)


@parallel_interleave_v3_op.kernel
def _(xp, source, captured, cycle, block, calls, *, waiter, operation, f, deterministic):
    return _interleaved(
        waiter, operation, f, source, captured, (cycle, block), calls, deterministic
    )


@parallel_interleave_v4_op.kernel
def _(
    xp,
    source,
    captured,
    cycle,
    block,
    buffered,
    opened,
    calls,
    *,
    waiter,
    operation,
    f,
    deterministic,
):
    return _interleaved(
        waiter, operation, f, source, captured, (cycle, block), calls, deterministic
    )


@map_and_batch_op.kernel
def _(xp, source, captured, size, calls, drop_remainder, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    mapped = ParallelMap(pipeline_of(source), function, most_parallel(number(calls)))
    return (scalar(Batch(mapped, number(size), bool(drop_remainder))),)


@parallel_batch_op.kernel
def _(xp, source, size, calls, drop_remainder):
    return scalar(Batch(pipeline_of(source), number(size), bool(drop_remainder)))


for _op in (options_op, model_op):

    @_op.kernel
    def _(xp, source):
        return scalar(pipeline_of(source))


for _op in (threads_op, parallelism_op):

    @_op.kernel
    def _(xp, source, setting):
        return scalar(pipeline_of(source))
