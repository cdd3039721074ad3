"""Datasets of what others collect, of tables, and what a dataset is as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.ops.data.dataset_ops import (
    METADATA,
    TYPES,
    dataset_op,
    number,
    paths_of,
    pipeline_of,
    text_of,
)
from runnel.ops.data.declared_types import of_types
from runnel.ops.data.function_ops import bound_function
from runnel.ops.parsing.decode_csv import decoded_columns
from runnel.ops.queues.queue_ops import RandomWords
from runnel.pipelines.collecting import DenseToSparseBatch, FirstOccurrences, GroupByReducer
from runnel.pipelines.databases import SqlRows
from runnel.pipelines.files import CsvLines
from runnel.pipelines.mapping import Map
from runnel.pipelines.pipeline import END, Block, Element, Pipeline, PipelineRun
from runnel.pipelines.sources import RandomNumbers, scalar
from runnel.records.record_writer import TFRecordWriter

_INPUT = "input_dataset: variant"
unique_op = dataset_op("UniqueDataset", _INPUT, [*TYPES, METADATA])
sparse_batch_op = dataset_op(
    "DenseToSparseBatchDataset", f"{_INPUT}, batch_size: int64, row_shape: int64", TYPES
)
random_op = dataset_op("RandomDataset", "seed: int64, seed2: int64", [*TYPES, METADATA])
csv_op = dataset_op(
    "CSVDataset",
    "filenames: string, compression_type: string, buffer_size: int64, header: bool, "
    "field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, "
    "record_defaults: output_types",
    [
        "output_types: list({float, double, int32, int64, string}) >= 1",
        "output_shapes: list(shape) >= 1",
    ],
)
sql_op = dataset_op(
    "SqlDataset", "driver_name: string, data_source_name: string, query: string", TYPES
)
_FUNCTIONS = ("key_func", "init_func", "reduce_func", "finalize_func")
group_by_reducer_op = dataset_op(
    "GroupByReducerDataset",
    ", ".join([_INPUT, *[f"{f}_other_arguments: T{f}_other_arguments" for f in _FUNCTIONS]]),
    [
        *[f"{f}: func" for f in _FUNCTIONS],
        *[f"T{f}_other_arguments: list(type) >= 0" for f in _FUNCTIONS],
        *TYPES,
    ],
    blocking=True,
)


@unique_op.kernel
def _(xp, source):
    return scalar(FirstOccurrences(pipeline_of(source)))


@sparse_batch_op.kernel
def _(xp, source, size, row_shape):
    shape = np.asarray(row_shape).tolist()
    return scalar(DenseToSparseBatch(pipeline_of(source), number(size), shape))


@random_op.kernel
def _(xp, seed, seed2):
    return scalar(RandomNumbers(RandomWords, RandomWords(number(seed), number(seed2)).state()))


class PythonFunction:
    """A function of elements that is no part of a graph."""

    pipelines: Sequence[Pipeline] = ()
    state = None
    name = ""
    has_rows = False

    def __init__(self, call: Callable[[Sequence[Any]], Element]) -> None:
        self._call = call

    def __call__(self, element: Sequence[Any], /) -> Element:
        return self._call(element)

    def rows(self, columns: Sequence[Any], count: int, /) -> Block:
        raise NotImplementedError


@csv_op.kernel
def _(
    xp,
    paths,
    compression,
    size,
    header,
    delimiter,
    quotes,
    missing,
    chosen,
    defaults,
    *,
    output_types,
):
    texts = [value.encode() for value in (text_of(delimiter), text_of(missing))]
    if len(texts[0]) != 1:
        raise InvalidArgumentError(None, None, "field_delim should be only a single char")
    how = (bool(quotes), texts[1], np.asarray(chosen).tolist())

    def parsed(element: Sequence[Any]) -> Element:
        lines = [element[0][()]]
        columns = decoded_columns(lines, list(defaults), output_types, texts[0], *how)
        return [scalar(column[0]) if column.dtype == object else column[0] for column in columns]

    lines = CsvLines(paths_of(paths), text_of(compression), bool(header), bool(quotes))
    return scalar(Map(lines, PythonFunction(parsed)))


@sql_op.kernel
def _(xp, driver, path, query, *, output_types):
    if text_of(driver) != "sqlite":
        raise InvalidArgumentError(
            None, None, f"The database type, {text_of(driver)}, is not supported: use 'sqlite'."
        )

    def converted(row: tuple[Any, ...]) -> Element:
        if len(row) != len(output_types):
            raise InvalidArgumentError(
                None,
                None,
                f"The number of columns in query {len(row)} must match the number of elements in "
                f"output_types {len(output_types)}.",
            )
        return [_of_column(value, dtype) for value, dtype in zip(row, output_types, strict=True)]

    return scalar(SqlRows(text_of(path), text_of(query), converted))


def _of_column(value: Any, dtype: DType) -> Any:
    if dtype.np_dtype == object:
        text = b"" if value is None else value
        return scalar(text if isinstance(text, bytes) else str(text).encode())
    if isinstance(value, bytes):
        value = float(value) if value else 0
    kind: Any = dtype.np_dtype.type
    return kind(0 if value is None else value)


@group_by_reducer_op.kernel
def _(
    xp,
    source,
    of_key,
    of_init,
    of_reduce,
    of_finalize,
    *,
    waiter,
    operation,
    key_func,
    init_func,
    reduce_func,
    finalize_func,
):
    names = (key_func, init_func, reduce_func, finalize_func)
    captured = (of_key, of_init, of_reduce, of_finalize)
    functions = [
        bound_function(waiter, operation, name, values)
        for name, values in zip(names, captured, strict=True)
    ]
    return (scalar(GroupByReducer(pipeline_of(source), *functions)),)


# A dataset as a whole ---------------------------------------------------------------------------

cardinality_op = register_op(
    "DatasetCardinality",
    inputs=_INPUT,
    outputs="cardinality: int64",
    attrs=["cardinality_options: string = ''"],
    host=True,
    differentiable=False,
)
single_element_op = register_op(
    "DatasetToSingleElement",
    inputs="dataset: variant",
    outputs="components: output_types",
    attrs=[*TYPES, METADATA],
    blocking=True,
    holds_thread=True,
    differentiable=False,
)
to_records_op = register_op(
    "DatasetToTFRecord",
    inputs=f"{_INPUT}, filename: string, compression_type: string",
    outputs="",
    blocking=True,
    holds_thread=True,
    differentiable=False,
)
cardinality_op.shape(lambda dataset: ())


@cardinality_op.kernel
def _(xp, dataset):
    return np.int64(pipeline_of(dataset).cardinality())


@single_element_op.shape
def _(dataset, *, output_shapes):
    return [shape._dims for shape in output_shapes]


@single_element_op.kernel
def _(xp, dataset, *, waiter, output_types):
    traversal = pipeline_of(dataset).iterate(PipelineRun(waiter.require_time))
    try:
        element = traversal.next()
        if element is END:
            raise InvalidArgumentError(None, None, "Dataset was empty.")
        if traversal.next() is not END:
            raise InvalidArgumentError(None, None, "Dataset had more than one element.")
        return of_types(element, output_types)
    finally:
        traversal.close()


@to_records_op.kernel
def _(xp, dataset, path, compression, *, waiter):
    traversal = pipeline_of(dataset).iterate(PipelineRun(waiter.require_time))
    try:
        with TFRecordWriter(text_of(path), text_of(compression)) as writer:
            while (element := traversal.next()) is not END:
                waiter.require_time()
                writer.write(np.asarray(element[0]).item())
    finally:
        traversal.close()
    return ()
