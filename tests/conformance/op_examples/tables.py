"""Examples of operations on tables."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from tests.conformance.exchange import Builder, Example, Steps

STRING, INT64 = 7, 9


def texts(*values: bytes) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


KEYS, VALUES = texts(b"a", b"b"), np.array([1, 2], np.int64)
KINDS = {"key_dtype": STRING, "value_dtype": INT64}
ASKED = texts(b"b", b"z", b"a", b"b").reshape(2, 2)


def static(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        table = b.one("HashTableV2", **KINDS)
        fill = b.op("InitializeTableV2", table, KEYS, VALUES)
        found = b.op("LookupTableFindV2", table, ASKED, np.int64(-1))
        size = b.op("LookupTableSizeV2", table)
        return [fill, found, size, fill, size]

    return example


def mutable(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        table = b.one("MutableHashTableV2", **KINDS)
        put = b.op("LookupTableInsertV2", table, KEYS, VALUES)
        change = b.op("LookupTableInsertV2", table, KEYS[:1], VALUES[1:])
        found = b.op("LookupTableFindV2", table, ASKED, np.int64(-1))
        drop = b.op("LookupTableRemoveV2", table, KEYS[1:])
        exported = b.op("LookupTableExportV2", table, Tkeys=STRING, Tvalues=INT64)
        replace = b.op("LookupTableImportV2", table, KEYS[1:], VALUES[:1])
        return [found, put, found, change, found, drop, found, exported, replace, exported]

    return example


def of_vectors(op_type: str) -> Example:
    rows = np.arange(4, dtype=np.int64).reshape(2, 2)

    def example(b: Builder) -> Steps:
        if op_type == "MutableDenseHashTableV2":
            keys, ends = np.array([3, 4], np.int64), (np.int64(-1), np.int64(-2))
            size = {"value_shape": [2], "initial_num_buckets": 8}
            table = b.one(op_type, *ends, value_dtype=INT64, **size)
        else:
            keys, table = KEYS, b.one(op_type, value_shape=[2], **KINDS)
        put = b.op("LookupTableInsertV2", table, keys, rows)
        found = b.op("LookupTableFindV2", table, keys[::-1], np.array([7, 8], np.int64))
        count = b.op("LookupTableSizeV2", table)
        return [found, put, found, count]

    return example


def from_file(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"a\t10\nb\t20\r\nc\t30\n")
        steps = []
        for key, value in ((-2, -1), (0, 1), (0, -1)):
            table = b.one("HashTableV2", **KINDS)
            fill = b.op(op_type, table, file.name, key_index=key, value_index=value, vocab_size=2)
            found = b.op(
                "LookupTableFindV2", table, texts(b"a", b"b", b"c", b"a\t10"), np.int64(-1)
            )
            steps += [fill, found]
        return steps

    return example


EXAMPLES: dict[str, Any] = {
    "HashTableV2": static,
    "InitializeTableV2": static,
    "LookupTableFindV2": static,
    "LookupTableSizeV2": static,
    "MutableHashTableV2": mutable,
    "MutableHashTableOfTensorsV2": of_vectors,
    "MutableDenseHashTableV2": of_vectors,
    "LookupTableInsertV2": mutable,
    "LookupTableRemoveV2": mutable,
    "LookupTableExportV2": mutable,
    "LookupTableImportV2": mutable,
    "InitializeTableFromTextFileV2": from_file,
}
