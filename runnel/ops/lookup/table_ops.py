"""The operations on tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from runnel.gfile import open_binary
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.ops.lookup.table_state import TableState
from runnel.ops.parsing.numerals import number_of
from runnel.ops.queues.queue_ops import denoted

WHOLE_LINE, LINE_NUMBER = -2, -1

_WHO = [
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
]


def _table_op(name: str, static: bool, attrs: Any = ()) -> Any:
    made = register_op(
        name,
        outputs="table_handle: resource",
        attrs=[*_WHO, *attrs],
        blocking=True,  # it makes what steps share
        differentiable=False,
    )
    made.shape(lambda: ())

    @made.kernel
    def _(xp, *, waiter, operation, key_dtype, value_dtype):
        return (
            waiter.resources.handle(
                operation,
                TableState,
                lambda shared: TableState(shared, key_dtype, value_dtype, static),
                lambda present: present.require_types(key_dtype, value_dtype),
            ),
        )

    return made


hash_table_op = _table_op("HashTableV2", static=True)
mutable_op = _table_op("MutableHashTableV2", static=False)


def _op(name: str, inputs: str, outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        host=True,
        stateful=True,
        differentiable=False,
    )


_TABLE = "table_handle: resource"
_TYPES = ["Tin: type", "Tout: type"]
find_op = _op(
    "LookupTableFindV2", f"{_TABLE}, keys: Tin, default_value: Tout", "values: Tout", _TYPES
)
insert_op = _op("LookupTableInsertV2", f"{_TABLE}, keys: Tin, values: Tout", attrs=_TYPES)
import_op = _op("LookupTableImportV2", f"{_TABLE}, keys: Tin, values: Tout", attrs=_TYPES)
remove_op = _op("LookupTableRemoveV2", f"{_TABLE}, keys: Tin", attrs=["Tin: type"])
size_op = _op("LookupTableSizeV2", _TABLE, "size: int64")
export_op = _op(
    "LookupTableExportV2",
    _TABLE,
    "keys: Tkeys, values: Tvalues",
    ["Tkeys: type", "Tvalues: type"],
)
initialize_op = _op(
    "InitializeTableV2", f"{_TABLE}, keys: Tkey, values: Tval", attrs=["Tkey: type", "Tval: type"]
)
initialize_from_file_op = _op(
    "InitializeTableFromTextFileV2",
    f"{_TABLE}, filename: string",
    attrs=[
        "key_index: int >= -2",
        "value_index: int >= -2",
        "vocab_size: int >= -1 = -1",
        "delimiter: string = '\t'",
        "offset: int = 0",
    ],
)


@find_op.shape
def _(table, keys, default):
    if keys.dims is None or default.dims is None:
        return None
    return (*keys.dims, *default.dims)


@find_op.kernel
def _(xp, table, keys, default, *, Tin, Tout):  # noqa: N803 (TensorFlow's names)
    state = denoted(table, TableState)
    state.require_types(Tin.base_dtype, Tout.base_dtype)
    return state.find(np.asarray(keys), np.asarray(default))


def _require_rows(keys: Any, values: Any) -> None:
    if np.shape(values)[: np.ndim(keys)] != np.shape(keys):
        raise InvalidArgumentError(
            None,
            None,
            f"There must be a value for each key, but the keys have the shape {np.shape(keys)} "
            f"and the values {np.shape(values)}",
        )


@insert_op.kernel
def _(xp, table, keys, values):
    _require_rows(keys, values)
    denoted(table, TableState).insert(np.asarray(keys), np.asarray(values))
    return ()


@import_op.kernel
def _(xp, table, keys, values):
    _require_rows(keys, values)
    denoted(table, TableState).replace(np.asarray(keys), np.asarray(values))
    return ()


@remove_op.kernel
def _(xp, table, keys):
    denoted(table, TableState).remove(np.asarray(keys))
    return ()


size_op.shape(lambda table: ())


@size_op.kernel
def _(xp, table):
    return np.int64(denoted(table, TableState).size())


@export_op.shape
def _(table):
    return [(None,), (None,)]


@export_op.kernel
def _(xp, table):
    return denoted(table, TableState).export()


@initialize_op.kernel
def _(xp, table, keys, values):
    _require_rows(keys, values)
    pairs = zip(
        np.asarray(keys).reshape(-1).tolist(), np.asarray(values).reshape(-1).tolist(), strict=True
    )
    denoted(table, TableState).initialize(pairs)
    return ()


@initialize_from_file_op.kernel
def _(xp, table, filename, *, key_index, value_index, vocab_size, delimiter, offset):
    state = denoted(table, TableState)
    path = os.fsdecode(np.asarray(filename).item())
    mark = delimiter.encode() if isinstance(delimiter, str) else delimiter

    def part(line: bytes, number: int, index: int, dtype: Any) -> Any:
        if index == LINE_NUMBER:
            return number + offset
        text = line
        if index != WHOLE_LINE:
            columns = line.split(mark)
            if index >= len(columns):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{path}: line {number + 1} has {len(columns)} columns, but column {index} "
                    "is wanted",
                )
            text = columns[index]
        if dtype.np_dtype == object:
            return text
        value = number_of(text, dtype)
        if value is None:
            raise InvalidArgumentError(
                None, None, f"{path}: {text[:60]!r} in line {number + 1} is no {dtype.name}"
            )
        return value

    def pairs() -> Iterator[tuple[Any, Any]]:
        count = 0
        with open_binary(path) as file:
            for number, line in enumerate(file):
                if number == vocab_size:
                    break
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                yield (
                    part(text, number, key_index, state.key_dtype),
                    part(text, number, value_index, state.value_dtype),
                )
                count += 1
        if count < vocab_size:
            raise InvalidArgumentError(
                None,
                None,
                f"Invalid vocab_size in {path}: expected {vocab_size} but got {count}",
            )

    state.initialize(pairs())
    return ()
