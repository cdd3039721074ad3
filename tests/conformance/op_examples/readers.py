"""Examples of operations on readers: each reads some files that a queue names."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from runnel.records.framing import framed
from tests.conformance.exchange import Builder, Example, Inputs, Steps

CONTENTS = {
    "TFRecordReaderV2": [framed(b"a") + framed(b"bc"), b"", framed(b"d")],
    "TextLineReaderV2": [b"head\none\ntwo", b"head\r\nthree\r\n"],
    "WholeFileReaderV2": [b"all", b""],
    "FixedLengthRecordReaderV2": [b"Haabbf", b"Hccf"],
    "IdentityReaderV2": [b"x", b"y"],
}
ATTRS: dict[str, Any] = {
    "TextLineReaderV2": {"skip_header_lines": 1},
    "FixedLengthRecordReaderV2": {"record_bytes": 2, "header_bytes": 1, "footer_bytes": 1},
}


def started(b: Builder, reader_type: str) -> tuple[str, str, list[str]]:
    """A reader, a queue of names of files, and what fills it."""
    names = []
    for content in CONTENTS[reader_type]:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(content)
        names.append(file.name.encode())
    queue = b.one("FIFOQueueV2", component_types=[7], shapes=[[]], capacity=9, shared_name="q")
    paths = np.empty(len(names), object)
    paths[:] = names
    put = b.op("QueueEnqueueManyV2", queue, Inputs([paths]), timeout_ms=-1)
    reader = b.one(reader_type, **ATTRS.get(reader_type, {}))
    return reader, queue, put


def read(op_type: str) -> Example:
    reader_type = op_type if op_type in CONTENTS else "TextLineReaderV2"

    def example(b: Builder) -> Steps:
        reader, queue, put = started(b, reader_type)
        one = b.op("ReaderReadV2", reader, queue)
        many = b.op("ReaderReadUpToV2", reader, queue, np.int64(5))
        counts = [
            *b.op("ReaderNumRecordsProducedV2", reader),
            *b.op("ReaderNumWorkUnitsCompletedV2", reader),
        ]
        reset = b.op("ReaderResetV2", reader)
        return [put, one, counts, many, counts, reset, counts]

    return example


def saved(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        reader, queue, put = started(b, "IdentityReaderV2")
        one = b.op("ReaderReadV2", reader, queue)
        state = b.op("ReaderSerializeStateV2", reader)
        other = b.one("IdentityReaderV2")
        restore = b.op("ReaderRestoreStateV2", other, b"\x08\x03\x10\x03\x18\x07")
        count = b.op("ReaderNumRecordsProducedV2", other)
        return [put, state, one, restore, count]

    return example


EXAMPLES: dict[str, Any] = dict.fromkeys(CONTENTS, read)
for name in ("Read", "ReadUpTo", "NumRecordsProduced", "NumWorkUnitsCompleted", "Reset"):
    EXAMPLES[f"Reader{name}V2"] = read
for name in ("SerializeState", "RestoreState"):
    EXAMPLES[f"Reader{name}V2"] = saved
