"""The operations that make datasets: each gives the pipeline that it describes, as a variant."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import scalar as scalar_shape
from runnel.ops.queues.queue_ops import RandomWords
from runnel.pipelines.batching import Batch, PaddedBatch, Unbatch, Window
from runnel.pipelines.buffering import Cache, Prefetch, Shuffle
from runnel.pipelines.choosing import Directed, IgnoreErrors
from runnel.pipelines.copying import CopyToDevice
from runnel.pipelines.disk_cache import DiskCache
from runnel.pipelines.files import Lines, Pieces, Records
from runnel.pipelines.pipeline import Pipeline
from runnel.pipelines.selecting import Concatenate, Repeat, Shard, Skip, Take, Zip
from runnel.pipelines.sources import Numbers, Slices, SparseRows, Tensors, scalar

TYPES = ["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"]
METADATA = "metadata: string = ''"
_AUTOTUNED = 4
"""How many elements are made ahead where the number is left to us."""


def dataset_op(name: str, inputs: str, attrs: Any, blocking: bool = False) -> OpDef:
    """An operation that makes a dataset."""
    op_def = register_op(
        name,
        inputs=inputs,
        outputs="handle: variant",
        attrs=[*attrs],
        host=True,
        stateful=True,  # a dataset is an object: two of the same are two
        blocking=blocking,
        differentiable=False,
    )
    op_def.shape(scalar_shape)
    return op_def


def pipeline_of(variant: Any) -> Pipeline:
    """The pipeline that a variant holds."""
    found = variant[()] if isinstance(variant, np.ndarray) and not variant.ndim else variant
    if not isinstance(found, Pipeline):
        raise InvalidArgumentError(None, None, f"A dataset is expected here, not {found!r}")
    return found


def number(value: Any) -> int:
    """The number that a scalar is."""
    return int(np.asarray(value).reshape(-1)[0])


def text_of(value: Any) -> str:
    """The text that a scalar is."""
    return os.fsdecode(np.asarray(value).item())


def paths_of(values: Any) -> list[str]:
    """The names of files in a tensor."""
    return [os.fsdecode(value) for value in np.asarray(values, object).reshape(-1)]


# Sources ----------------------------------------------------------------------------------------

_COMPONENTS = ["Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1"]
tensor_op = dataset_op("TensorDataset", "components: Toutput_types", [*_COMPONENTS, METADATA])
slices_op = dataset_op(
    "TensorSliceDataset",
    "components: Toutput_types",
    [*_COMPONENTS, "is_files: bool = false", METADATA, "replicate_on_split: bool = false"],
)
sparse_slices_op = dataset_op(
    "SparseTensorSliceDataset",
    "indices: int64, values: Tvalues, dense_shape: int64",
    ["Tvalues: type"],
)
range_op = dataset_op(
    "RangeDataset",
    "start: int64, stop: int64, step: int64",
    [*TYPES, METADATA, "replicate_on_split: bool = false"],
)
_FILES = "filenames: string, compression_type: string, buffer_size: int64"
lines_op = dataset_op("TextLineDataset", _FILES, [METADATA])
records_op = dataset_op("TFRecordDataset", _FILES, [METADATA])
_PIECES = (
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, "
    "buffer_size: int64"
)
pieces_v2_op = dataset_op(
    "FixedLengthRecordDatasetV2", f"{_PIECES}, compression_type: string", [METADATA]
)


@tensor_op.kernel
def _(xp, components):
    return scalar(Tensors(list(components)))


@slices_op.kernel
def _(xp, components):
    return scalar(Slices([np.asarray(component) for component in components]))


@sparse_slices_op.kernel
def _(xp, indices, values, shape):
    return scalar(SparseRows(indices, values, shape))


@range_op.kernel
def _(xp, start, stop, step, *, output_types):
    numbers = (number(start), number(stop), number(step))
    return scalar(Numbers(*numbers, output_types[0].np_dtype))


@lines_op.kernel
def _(xp, paths, compression, size):
    return scalar(Lines(paths_of(paths), text_of(compression)))


@records_op.kernel
def _(xp, paths, compression, size):
    return scalar(Records(paths_of(paths), text_of(compression)))


@pieces_v2_op.kernel
def _(xp, paths, header, length, footer, size, compression):
    numbers = (number(header), number(length), number(footer))
    return scalar(Pieces(paths_of(paths), *numbers, text_of(compression)))


# Transformations without functions --------------------------------------------------------------

_INPUT = "input_dataset: variant"
zip_op = dataset_op("ZipDataset", "input_datasets: N * variant", [*TYPES, "N: int >= 1", METADATA])
concatenate_op = dataset_op(
    "ConcatenateDataset", f"{_INPUT}, another_dataset: variant", [*TYPES, METADATA]
)
repeat_op = dataset_op("RepeatDataset", f"{_INPUT}, count: int64", [*TYPES, METADATA])
take_op = dataset_op("TakeDataset", f"{_INPUT}, count: int64", [*TYPES, METADATA])
skip_op = dataset_op("SkipDataset", f"{_INPUT}, count: int64", [*TYPES, METADATA])
shard_op = dataset_op(
    "ShardDataset",
    f"{_INPUT}, num_shards: int64, index: int64",
    ["require_non_empty: bool = false", *TYPES, METADATA],
)
batch_v2_op = dataset_op(
    "BatchDatasetV2",
    f"{_INPUT}, batch_size: int64, drop_remainder: bool",
    ["parallel_copy: bool = false", *TYPES, METADATA],
)
padded_batch_v2_op = dataset_op(
    "PaddedBatchDatasetV2",
    f"{_INPUT}, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types, "
    "drop_remainder: bool",
    ["parallel_copy: bool = false", *_COMPONENTS, "N: int >= 1", METADATA],
)
unbatch_op = dataset_op("UnbatchDataset", _INPUT, [*TYPES, METADATA])
window_op = dataset_op(
    "WindowDataset",
    f"{_INPUT}, size: int64, shift: int64, stride: int64, drop_remainder: bool",
    [*TYPES, METADATA],
)
shuffle_op = dataset_op(
    "ShuffleDataset",
    f"{_INPUT}, buffer_size: int64, seed: int64, seed2: int64",
    ["reshuffle_each_iteration: bool = true", *TYPES, METADATA],
)
shuffle_and_repeat_op = dataset_op(
    "ShuffleAndRepeatDataset",
    f"{_INPUT}, buffer_size: int64, seed: int64, seed2: int64, count: int64",
    [*TYPES, "reshuffle_each_iteration: bool = true", METADATA],
)
cache_op = dataset_op("CacheDataset", f"{_INPUT}, filename: string", [*TYPES, METADATA])
prefetch_op = dataset_op(
    "PrefetchDataset",
    f"{_INPUT}, buffer_size: int64",
    [
        *TYPES,
        "slack_period: int = 0",
        "legacy_autotune: bool = true",
        "buffer_size_min: int = 0",
        METADATA,
    ],
)


@zip_op.kernel
def _(xp, inputs):
    return scalar(Zip([pipeline_of(one) for one in inputs]))


@concatenate_op.kernel
def _(xp, first, second):
    return scalar(Concatenate([pipeline_of(first), pipeline_of(second)]))


@repeat_op.kernel
def _(xp, source, count):
    return scalar(Repeat(pipeline_of(source), number(count)))


@take_op.kernel
def _(xp, source, count):
    return scalar(Take(pipeline_of(source), number(count)))


@skip_op.kernel
def _(xp, source, count):
    return scalar(Skip(pipeline_of(source), number(count)))


@shard_op.kernel
def _(xp, source, shards, index):
    return scalar(Shard(pipeline_of(source), number(shards), number(index)))


@batch_v2_op.kernel
def _(xp, source, size, drop_remainder):
    return scalar(Batch(pipeline_of(source), number(size), bool(drop_remainder)))


@padded_batch_v2_op.kernel
def _(xp, source, size, shapes, fillings, drop_remainder):
    wanted = [np.asarray(shape).tolist() for shape in shapes]
    return scalar(
        PaddedBatch(pipeline_of(source), number(size), wanted, list(fillings), bool(drop_remainder))
    )


@unbatch_op.kernel
def _(xp, source):
    return scalar(Unbatch(pipeline_of(source)))


@window_op.kernel
def _(xp, source, size, shift, stride, drop_remainder):
    numbers = (number(size), number(shift), number(stride))
    return scalar(Window(pipeline_of(source), *numbers, bool(drop_remainder)))


class ShuffleSeeds:
    """What the traversals of a shuffle draw with: other numbers for each, or the same."""

    def __init__(self, seed: int, seed2: int, same: bool) -> None:
        self._seeds = (seed, seed2)
        self._drawn = RandomWords(seed, seed2)
        self._same: list[int] | None = None
        if same:
            drawn = self._drawn
            self._same = [seed, seed2] if (seed, seed2) != (0, 0) else [drawn(), drawn()]

    def __call__(self) -> RandomWords:
        return RandomWords(*(self._same or (self._drawn(), self._drawn())))

    def resumed(self, state: Any) -> RandomWords:
        return RandomWords(*state)

    def joined(self) -> Any:
        return JoinedSeeds(*self._seeds) if self._same is None else self

    def state(self) -> Any:
        return [self._same, self._drawn.state()]

    def restore(self, state: Any) -> None:
        self._same, drawn = state
        self._drawn = RandomWords(*drawn)


class JoinedSeeds:
    """What the traversals of one repetition draw with: each goes on where that before it ended."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._words = RandomWords(seed, seed2)

    def __call__(self) -> RandomWords:
        return self._words

    def resumed(self, state: Any) -> RandomWords:
        self._words.go_on_from(state)
        return self._words

    def joined(self) -> Any:
        return self

    def state(self) -> Any:
        return self._words.state()

    def restore(self, state: Any) -> None:
        self._words.go_on_from(state)


@shuffle_op.kernel
def _(xp, source, size, seed, seed2, *, reshuffle_each_iteration):
    seeds = ShuffleSeeds(number(seed), number(seed2), not reshuffle_each_iteration)
    return scalar(Shuffle(pipeline_of(source), number(size), seeds))


@shuffle_and_repeat_op.kernel
def _(xp, source, size, seed, seed2, count, *, reshuffle_each_iteration):
    seeds = ShuffleSeeds(number(seed), number(seed2), not reshuffle_each_iteration)
    shuffled = Shuffle(pipeline_of(source), number(size), seeds)
    return scalar(Repeat(shuffled, number(count), joins_shuffle=True))


@cache_op.kernel
def _(xp, source, filename):
    name = text_of(filename)
    return scalar(DiskCache(pipeline_of(source), name) if name else Cache(pipeline_of(source)))


@prefetch_op.kernel
def _(xp, source, size, *, operation):
    count = number(size)
    if count < -1:
        raise InvalidArgumentError(None, None, "buffer_size must be >= 0 or set to AUTOTUNE")
    size = _AUTOTUNED if count < 0 else count
    return scalar(Prefetch(pipeline_of(source), size, name=operation.name))


copy_op = dataset_op(
    "CopyToDeviceDataset", _INPUT, ["target_device: string", *TYPES], blocking=True
)


@copy_op.kernel
def _(xp, source, *, waiter, target_device):
    return (scalar(CopyToDevice(pipeline_of(source), waiter.sender_to(target_device))),)


ignore_errors_op = dataset_op("IgnoreErrorsDataset", _INPUT, [*TYPES, "log_warning: bool = false"])
directed_op = dataset_op(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    [*TYPES, "N: int >= 1", "stop_on_empty_dataset: bool = false"],
)


@ignore_errors_op.kernel
def _(xp, source):
    return scalar(IgnoreErrors(pipeline_of(source)))


@directed_op.kernel
def _(xp, selector, sources, *, stop_on_empty_dataset):
    pipelines = [pipeline_of(one) for one in sources]
    return scalar(Directed(pipeline_of(selector), pipelines, stop_on_empty_dataset))
