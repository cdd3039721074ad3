"""Examples of operations that make datasets: each is iterated over."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from typing import Any

import numpy as np

from runnel.records.framing import framed
from tests.conformance.exchange import Builder, Example, Inputs, Steps

FLOAT, INT64, STRING, VARIANT = 1, 9, 7, 21
NUMBERS = np.arange(7, dtype=np.int64)
ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)


def one(dtype: int = INT64, shape: Any = ()) -> dict[str, Any]:
    return {"output_types": [dtype], "output_shapes": [shape]}


def iterated(b: Builder, dataset: str, count: int, attrs: dict[str, Any]) -> Steps:
    """The first elements of a dataset."""
    iterator = b.one("IteratorV2", shared_name="", container="", **attrs)
    begin = b.op("MakeIterator", dataset, iterator)
    element = b.op("IteratorGetNext", iterator, **attrs)
    return [begin, *[element] * count, begin, element]


def numbers(b: Builder) -> str:
    return b.one("RangeDataset", np.int64(0), np.int64(7), np.int64(1), **one())


def number(value: int) -> np.int64:
    return np.int64(value)


def of_numbers(*inputs: Any, count: int = 3, attrs: Any = None, **more: Any) -> Any:
    """A transformation of the numbers below 7."""

    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            made = attrs or one()
            return iterated(b, b.one(op_type, numbers(b), *inputs, **made, **more), count, made)

        return example

    return example_for


def tensors(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        shapes = [[6, 2], [6]] if op_type == "TensorDataset" else [[2], []]
        types = {"output_types": [FLOAT, INT64], "output_shapes": shapes}
        made = b.one(op_type, Inputs([ROWS, NUMBERS[:6]]), output_shapes=shapes)
        return iterated(b, made, 1, types)

    return example


def counted(op_type: str) -> Example:
    return lambda b: iterated(b, numbers(b), 3, one())


def sparse_rows(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        places = np.array([[0, 1], [2, 0], [2, 2]], np.int64)
        made = b.one(op_type, places, ROWS[:3, 0].copy(), np.array([4, 3], np.int64))
        types = {"output_types": [INT64, FLOAT, INT64], "output_shapes": [[None, 1], [None], [1]]}
        return iterated(b, made, 4, types)

    return example


def zipped(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        types = {"output_types": [INT64, INT64], "output_shapes": [[], []]}
        made = b.one(op_type, Inputs([numbers(b), numbers(b)]), **types)
        return iterated(b, made, 2, types)

    return example


def concatenated(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        return iterated(b, b.one(op_type, numbers(b), numbers(b), **one()), 9, one())

    return example


def padded(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        rows = b.one("TensorSliceDataset", Inputs([ROWS]), output_shapes=[[2]])
        shapes = Inputs([np.array([3], np.int64)])
        made = b.one(
            op_type,
            *(rows, number(4), shapes, Inputs([-1.0]), False),
            output_shapes=[[None, 3]],
        )
        return iterated(b, made, 2, one(FLOAT, [None, 3]))

    return example


def unbatched(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        rows = b.one("TensorSliceDataset", Inputs([ROWS]), output_shapes=[[2]])
        return iterated(b, b.one(op_type, rows, **one(FLOAT)), 5, one(FLOAT))

    return example


def of_file(content: bytes, *inputs: Any, count: int) -> Any:
    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            with tempfile.NamedTemporaryFile(delete=False) as file:
                file.write(content)
            made = b.one(op_type, file.name, *inputs)
            return iterated(b, made, count, one(STRING))

        return example

    return example_for


def handled(op_type: str) -> Example:
    """An iterator that a string stands for, which differs from run to run."""

    def example(b: Builder) -> Steps:
        iterator = b.one("IteratorV2", shared_name="", container="", **one())
        begin = b.op("MakeIterator", numbers(b), iterator)
        made = op_type if op_type.startswith("IteratorFrom") else "IteratorFromStringHandleV2"
        again = b.one(made, b.one("IteratorToStringHandle", iterator), **one())
        return [begin, b.op("IteratorGetNext", again, **one())]

    return example


def old_iterator(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        iterator = b.one("Iterator", shared_name="x", container="", **one())
        begin = b.op("MakeIterator", numbers(b), iterator)
        return [begin, b.op("IteratorGetNextSync", iterator, **one())]

    return example


def directed(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        places = np.array([1, 0, 1, 1], np.int64)
        choices = b.one("TensorSliceDataset", Inputs([places]), output_shapes=[[]])
        tens = b.one("RangeDataset", number(10), number(12), number(1), **one())
        made = b.one(op_type, choices, Inputs([numbers(b), tens]), **one())
        return iterated(b, made, 3, one())

    return example


def sparse_batches(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        rows = b.one("TensorSliceDataset", Inputs([ROWS]), output_shapes=[[2]])
        attrs = {"output_types": [VARIANT], "output_shapes": [None]}
        made = b.one(op_type, rows, number(4), np.array([3], np.int64), **attrs)
        iterator = b.one("IteratorV2", shared_name="", container="", **attrs)
        begin = b.op("MakeIterator", made, iterator)
        element = b.op("IteratorGetNext", iterator, **attrs)
        return [begin, b.op("DeserializeSparse", element[0], dtype=FLOAT)]

    return example


def optional(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        none, some = b.one("OptionalNone"), b.one("OptionalFromValue", Inputs([ROWS]))
        return [
            b.op("OptionalHasValue", none),
            b.op("OptionalHasValue", some),
            b.op("OptionalGetValue", some, **one(FLOAT, [6, 2])),
        ]

    return example


def next_as_optional(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        iterator = b.one("IteratorV2", shared_name="", container="", **one())
        begin = b.op("MakeIterator", numbers(b), iterator)
        return [begin, b.op("OptionalHasValue", b.one(op_type, iterator, **one()))]

    return example


def whole(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        if op_type == "DatasetCardinality":
            return [b.op(op_type, numbers(b))]
        return [b.op(op_type, b.one("TakeDataset", numbers(b), number(1), **one()), **one())]

    return example


def written(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            pass
        texts = np.array([b"a", b"bc"], object)
        made = b.one("TensorSliceDataset", Inputs([texts]), output_shapes=[[]])
        return [b.op(op_type, made, file.name, ""), b.op("ReadFile", file.name)]

    return example


def random_numbers(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        return iterated(b, b.one(op_type, number(3), number(4), **one()), 3, one())

    return example


def csv(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b'1,"a"\n,b\n')
        types = {"output_types": [INT64, STRING], "output_shapes": [[], []]}
        defaults = Inputs([np.array([7], np.int64), np.array([b""], object)])
        columns = np.array([], np.int64)
        inputs = (file.name, "", SIZE, False, ",", True, "", columns, defaults)
        return iterated(b, b.one(op_type, *inputs, output_shapes=[[], []]), 2, types)

    return example


def sql(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            pass
        with contextlib.closing(sqlite3.connect(file.name)) as connection:
            connection.execute("CREATE TABLE t (n INTEGER)")
            connection.execute("INSERT INTO t VALUES (5)")
            connection.commit()
        made = b.one(op_type, "sqlite", file.name, "SELECT n FROM t", **one())
        return iterated(b, made, 1, one())

    return example


SIZE = np.int64(1 << 18)


def aggregated(op_type: str) -> Example:
    """Elements whose bytes are counted."""

    def example(b: Builder) -> Steps:
        aggregator = b.one("StatsAggregatorHandle", container="", shared_name="")
        counted_numbers = b.one("BytesProducedStatsDataset", numbers(b), "bytes", **one())
        made = b.one(
            "SetStatsAggregatorDataset", counted_numbers, aggregator, "all", "counter", **one()
        )
        return iterated(b, made, 3, one())

    return example


EXAMPLES: dict[str, Any] = {
    "TensorDataset": tensors,
    "TensorSliceDataset": tensors,
    "SparseTensorSliceDataset": sparse_rows,
    "RangeDataset": counted,
    "IteratorV2": counted,
    "MakeIterator": counted,
    "IteratorGetNext": counted,
    "Iterator": old_iterator,
    "IteratorGetNextSync": old_iterator,
    "IteratorToStringHandle": handled,
    "IteratorFromStringHandle": handled,
    "IteratorFromStringHandleV2": handled,
    "ZipDataset": zipped,
    "ConcatenateDataset": concatenated,
    "RepeatDataset": of_numbers(number(2), count=14),
    "TakeDataset": [of_numbers(number(3)), of_numbers(number(-1), count=7)],
    "SkipDataset": of_numbers(number(4)),
    "ShardDataset": of_numbers(number(3), number(1), count=2),
    "BatchDatasetV2": [
        of_numbers(number(3), False, attrs=one(INT64, [None])),
        of_numbers(number(3), True, count=2, attrs=one(INT64, [3])),
    ],
    "PaddedBatchDatasetV2": padded,
    "UnbatchDataset": unbatched,
    "ShuffleDataset": [
        of_numbers(number(3), number(5), number(7), count=7, reshuffle_each_iteration=False),
        of_numbers(number(20), number(5), number(7), count=7),
    ],
    "LatencyStatsDataset": of_numbers("tag", count=7),
    "BytesProducedStatsDataset": of_numbers("tag", count=7),
    "StatsAggregatorHandle": aggregated,
    "SetStatsAggregatorDataset": aggregated,
    "ParallelBatchDataset": of_numbers(
        number(3), number(1), False, attrs=one(INT64, [None]), deterministic=b"default"
    ),
    "OptionsDataset": of_numbers(count=7, serialized_options=b""),
    "ModelDataset": of_numbers(count=7),
    "OptimizeDataset": of_numbers(np.array([], object), count=7),
    "PrivateThreadPoolDataset": of_numbers(number(1), count=7),
    "MaxIntraOpParallelismDataset": of_numbers(number(1), count=7),
    "IgnoreErrorsDataset": of_numbers(count=7),
    "DirectedInterleaveDataset": directed,
    "CacheDataset": of_numbers("", count=7),
    "UniqueDataset": of_numbers(count=7),
    "DenseToSparseBatchDataset": sparse_batches,
    "OptionalNone": optional,
    "OptionalFromValue": optional,
    "OptionalHasValue": optional,
    "OptionalGetValue": optional,
    "IteratorGetNextAsOptional": next_as_optional,
    "DatasetCardinality": whole,
    "DatasetToSingleElement": whole,
    "DatasetToTFRecord": written,
    "RandomDataset": random_numbers,
    "CSVDataset": csv,
    "SqlDataset": sql,
    "PrefetchDataset": of_numbers(number(2), count=7),
    "TextLineDataset": of_file(b"one\r\n\ntwo\nthree", "", SIZE, count=4),
    "TFRecordDataset": of_file(framed(b"a") + framed(b""), "", SIZE, count=2),
    "FixedLengthRecordDatasetV2": of_file(
        b"HEADaabbccF", number(4), number(2), number(1), SIZE, "", count=3
    ),
}
