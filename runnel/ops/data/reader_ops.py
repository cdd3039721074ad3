"""The operations on readers: made, asked for records, saved and restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.registry import register_op
from runnel.ops.queues.queue_ops import denoted
from runnel.pipelines import reader_state
from runnel.pipelines.reader_state import Open, ReaderState
from runnel.pipelines.sources import scalar
from runnel.queues.queue import Queue


def _op(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        blocking=True,
        holds_thread=True,
        differentiable=False,
    )


_WHO = ["container: string = ''", "shared_name: string = ''"]


READERS: set[str] = set()
"""The op types that make readers."""


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _reader_op(
    name: str, attrs: list[str], open_work: Callable[[Operation], Open], is_single: bool = False
) -> Any:
    made = _op(name, outputs="reader_handle: resource", attrs=attrs)
    made.shape(lambda: ())
    READERS.add(name)

    @made.kernel
    def _(xp, *, waiter, operation):
        return (
            waiter.resources.handle(
                operation,
                ReaderState,
                lambda shared: ReaderState(shared, open_work(operation), is_single),
            ),
        )

    return made


tf_record_op = _reader_op(
    "TFRecordReaderV2",
    [*_WHO, "compression_type: string = ''"],
    lambda op: reader_state.records(_text(op.attrs["compression_type"])),
)
text_line_op = _reader_op(
    "TextLineReaderV2",
    ["skip_header_lines: int = 0", *_WHO],
    lambda op: reader_state.lines(op.attrs["skip_header_lines"]),
)
whole_file_op = _reader_op(
    "WholeFileReaderV2", _WHO, lambda op: reader_state.whole_file, is_single=True
)
identity_op = _reader_op("IdentityReaderV2", _WHO, lambda op: reader_state.identity, is_single=True)
fixed_length_op = _reader_op(
    "FixedLengthRecordReaderV2",
    [
        "header_bytes: int = 0",
        "record_bytes: int",
        "footer_bytes: int = 0",
        "hop_bytes: int = 0",
        *_WHO,
        "encoding: string = ''",
    ],
    lambda op: reader_state.pieces(
        op.attrs["header_bytes"],
        op.attrs["record_bytes"],
        op.attrs["footer_bytes"],
        op.attrs["hop_bytes"],
        _text(op.attrs["encoding"]),
    ),
)

_READER = "reader_handle: resource"
read_op = _op("ReaderReadV2", f"{_READER}, queue_handle: resource", "key: string, value: string")
read_up_to_op = _op(
    "ReaderReadUpToV2",
    f"{_READER}, queue_handle: resource, num_records: int64",
    "keys: string, values: string",
)
produced_op = _op("ReaderNumRecordsProducedV2", _READER, "records_produced: int64")
completed_op = _op("ReaderNumWorkUnitsCompletedV2", _READER, "units_completed: int64")
serialize_op = _op("ReaderSerializeStateV2", _READER, "state: string")
restore_op = _op("ReaderRestoreStateV2", f"{_READER}, state: string")
reset_op = _op("ReaderResetV2", _READER)

read_op.shape(lambda reader, queue: [(), ()])
read_up_to_op.shape(lambda reader, queue, count: [(None,), (None,)])
for _made in (produced_op, completed_op, serialize_op):
    _made.shape(lambda reader: ())


@read_op.kernel
def _(xp, reader, queue, *, waiter):
    state = denoted(reader, ReaderState)
    ((key, value),) = state.read(denoted(queue, Queue), waiter.require_time)
    return scalar(key), scalar(value)


@read_up_to_op.kernel
def _(xp, reader, queue, count, *, waiter):
    state = denoted(reader, ReaderState)
    found = state.read(denoted(queue, Queue), waiter.require_time, int(count))
    keys, values = np.empty(len(found), object), np.empty(len(found), object)
    keys[:], values[:] = [key for key, _ in found], [value for _, value in found]
    return keys, values


@produced_op.kernel
def _(xp, reader, *, waiter):
    return (np.int64(denoted(reader, ReaderState).produced),)


@completed_op.kernel
def _(xp, reader, *, waiter):
    return (np.int64(denoted(reader, ReaderState).finished),)


@serialize_op.kernel
def _(xp, reader, *, waiter):
    return (scalar(denoted(reader, ReaderState).serialized(waiter.require_time)),)


@restore_op.kernel
def _(xp, reader, state, *, waiter):
    content = np.asarray(state).item()
    denoted(reader, ReaderState).restore(content, waiter.require_time)
    return ()


@reset_op.kernel
def _(xp, reader, *, waiter):
    denoted(reader, ReaderState).reset(waiter.require_time)
    return ()
