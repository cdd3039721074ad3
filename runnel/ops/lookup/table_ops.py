"""The operations on tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runnel.gfile import open_binary
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.graph.shapes import TensorShape
from runnel.ops.lookup.bucket_layout import BucketLayout
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


_VALUE_SHAPE = "value_shape: shape = []"


def _table_op(name: str, inputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs="table_handle: resource",
        attrs=[*_WHO, *attrs],
        blocking=True,  # it makes what steps share
        differentiable=False,
    )


def _handle(waiter: Any, operation: Any, make: Callable[[str], TableState]) -> tuple[Any]:
    """The handle of a table, made if there is none; one that is shared must be described alike."""
    found = waiter.resources.handle(
        operation, TableState, make, lambda present: present.require_same(make(""))
    )
    return (found,)


hash_table_op = _table_op("HashTableV2")
mutable_op = _table_op("MutableHashTableV2")
mutable_of_tensors_op = _table_op("MutableHashTableOfTensorsV2", attrs=[_VALUE_SHAPE])
dense_op = _table_op(
    "MutableDenseHashTableV2",
    "empty_key: key_dtype, deleted_key: key_dtype",
    [_VALUE_SHAPE, "initial_num_buckets: int = 131072", "max_load_factor: float = 0.8"],
)
for _made in (hash_table_op, mutable_op, mutable_of_tensors_op):
    _made.shape(lambda: ())
dense_op.shape(lambda empty_key, deleted_key: ())


@hash_table_op.kernel
def _(xp, *, waiter, operation, key_dtype, value_dtype):
    return _handle(
        waiter, operation, lambda shared: TableState(shared, key_dtype, value_dtype, static=True)
    )


@mutable_op.kernel
def _(xp, *, waiter, operation, key_dtype, value_dtype):
    return _handle(
        waiter, operation, lambda shared: TableState(shared, key_dtype, value_dtype, static=False)
    )


@mutable_of_tensors_op.kernel
def _(xp, *, waiter, operation, key_dtype, value_dtype, value_shape):
    dims = _value_dims(value_shape)
    return _handle(
        waiter,
        operation,
        lambda shared: TableState(shared, key_dtype, value_dtype, False, dims),
    )


@dense_op.kernel
def _(
    xp,
    empty_key,
    deleted_key,
    *,
    waiter,
    operation,
    key_dtype,
    value_dtype,
    value_shape,
    initial_num_buckets,
    max_load_factor,
):
    empty, deleted = np.asarray(empty_key), np.asarray(deleted_key)
    if empty.shape != deleted.shape or np.array_equal(empty, deleted):
        raise InvalidArgumentError(
            None, None, f"Empty and deleted keys must differ and have one shape: {empty}, {deleted}"
        )
    if initial_num_buckets <= 0 or initial_num_buckets & (initial_num_buckets - 1):
        raise InvalidArgumentError(
            None, None, f"Number of buckets must be a power of 2: {initial_num_buckets}"
        )
    if not 0 < max_load_factor < 1:
        raise InvalidArgumentError(
            None, None, f"max_load_factor must be between 0 and 1: {max_load_factor}"
        )
    layout = BucketLayout(empty, deleted, initial_num_buckets, max_load_factor)
    dims = _value_dims(value_shape)
    return _handle(
        waiter,
        operation,
        lambda shared: TableState(shared, key_dtype, value_dtype, False, dims, layout),
    )


def _value_dims(shape: TensorShape) -> tuple[int, ...]:
    dims = [] if shape.ndims is None else shape.as_list()
    known = [dim for dim in dims if dim is not None]
    if shape.ndims is None or len(known) < len(dims):
        raise InvalidArgumentError(
            None, None, f"The values of a table must have a known shape, not {shape}"
        )
    return tuple(known)


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
    single = _key_rank(table)
    if keys.dims is None or default.dims is None or single is None:
        return None
    return (*keys.dims[: len(keys.dims) - single], *default.dims)


def _key_rank(table: Any) -> int | None:
    """The rank of a single key of the table that ``table`` denotes."""
    op = table.op
    if op.type == dense_op.name:
        return op.inputs[0].get_shape().ndims  # type: ignore[no-any-return]
    return 0 if op.type in (hash_table_op.name, mutable_op.name) else None


@find_op.kernel
def _(xp, table, keys, default, *, Tin, Tout):  # noqa: N803 (TensorFlow's names)
    state = denoted(table, TableState)
    state.require_types(Tin.base_dtype, Tout.base_dtype)
    return state.find(np.asarray(keys), np.asarray(default))


@insert_op.kernel
def _(xp, table, keys, values):
    denoted(table, TableState).insert(np.asarray(keys), np.asarray(values))
    return ()


@import_op.kernel
def _(xp, table, keys, values):
    state = denoted(table, TableState)
    if state.is_static:  # which TensorFlow 2's initializers of tables fill so
        _initialize(state, keys, values)
    else:
        state.replace(np.asarray(keys), np.asarray(values))
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
    if table.op.type in (hash_table_op.name, mutable_op.name):
        return [(None,), (None,)]
    if table.op.type == dense_op.name:
        return [(None, None), (None, None)]  # all buckets, a row each
    if table.op.type == mutable_of_tensors_op.name:
        values = TensorShape([None]).concatenate(TensorShape(table.op.attrs["value_shape"]))
        return [(None,), values._dims]
    return [None, None]


@export_op.kernel
def _(xp, table):
    return denoted(table, TableState).export()


@initialize_op.kernel
def _(xp, table, keys, values):
    _initialize(denoted(table, TableState), keys, values)
    return ()


def _initialize(state: TableState, keys: Any, values: Any) -> None:
    if np.shape(values) != np.shape(keys):
        raise InvalidArgumentError(
            None,
            None,
            f"There must be a value for each key, but the keys have the shape {np.shape(keys)} "
            f"and the values {np.shape(values)}",
        )
    pairs = zip(
        np.asarray(keys).reshape(-1).tolist(), np.asarray(values).reshape(-1).tolist(), strict=True
    )
    state.initialize(pairs)


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
