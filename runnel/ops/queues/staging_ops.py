"""The operations behind staging areas: tuples of tensors that wait between two steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef, register_op
from runnel.queues.staging import StagingBuffer, StagingMap

_BOUNDS = ["capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0"]
_WHO = ["container: string = ''", "shared_name: string = ''"]


def _op(name: str, inputs: str, outputs: str, types: str, extra: Any = ()) -> OpDef:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=[*_BOUNDS, types, *extra, *_WHO],
        blocking=True,
        differentiable=False,
    )


_SOME = "dtypes: list(type) >= 1"
_ANY = "dtypes: list(type)"


# In order ---------------------------------------------------------------------------------------

stage_op = _op("Stage", "values: dtypes", "", _SOME)
unstage_op = _op("Unstage", "", "values: dtypes", _SOME)
peek_op = _op("StagePeek", "index: int32", "values: dtypes", _SOME)
size_op = _op("StageSize", "", "size: int32", _ANY)
clear_op = _op("StageClear", "", "", _ANY)


def _buffer(waiter: Any, operation: Operation) -> StagingBuffer:
    attrs = operation.attrs
    return waiter.resources.find(
        operation,
        StagingBuffer,
        lambda shared: StagingBuffer(shared, attrs["capacity"], attrs["memory_limit"]),
    )


@stage_op.kernel
def _(xp, values, *, waiter, operation):
    return _buffer(waiter, operation).put(values, waiter)


@unstage_op.shape
def _(*, dtypes):
    return [None] * len(dtypes)


@unstage_op.kernel
def _(xp, *, waiter, operation):
    return _buffer(waiter, operation).get(waiter)


@peek_op.shape
def _(index, *, dtypes):
    return [None] * len(dtypes)


@peek_op.kernel
def _(xp, index, *, waiter, operation):
    return _buffer(waiter, operation).peek(int(index), waiter)


@size_op.shape
def _():
    return ()


@size_op.kernel
def _(xp, *, waiter, operation):
    return (np.int32(_buffer(waiter, operation).size()),)


@clear_op.kernel
def _(xp, *, waiter, operation):
    _buffer(waiter, operation).clear()
    return ()


# Under keys -------------------------------------------------------------------------------------


class MapOps:
    """The operations on a map of tuples; ``prefix`` is "Map" or "OrderedMap"."""

    def __init__(self, prefix: str) -> None:
        self.put = _op(
            f"{prefix}Stage",
            "key: int64, indices: int32, values: fake_dtypes",
            "",
            _ANY,
            ["fake_dtypes: list(type) >= 1"],
        )
        keyed = "key: int64, indices: int32"
        self.get = _op(f"{prefix}Unstage", keyed, "values: dtypes", _SOME)
        self.peek = _op(f"{prefix}Peek", keyed, "values: dtypes", _SOME)
        self.get_any = _op(
            f"{prefix}UnstageNoKey", "indices: int32", "key: int64, values: dtypes", _SOME
        )
        self.size = _op(f"{prefix}Size", "", "size: int32", _ANY)
        self.incomplete_size = _op(f"{prefix}IncompleteSize", "", "size: int32", _ANY)
        self.clear = _op(f"{prefix}Clear", "", "", _ANY)
        self._add_shapes()
        self._add_kernels(prefix == "OrderedMap")

    def _add_shapes(self) -> None:
        for op_def in (self.get, self.peek):

            @op_def.shape
            def _(key, indices, *, dtypes):
                return [None] * len(dtypes)

        @self.get_any.shape
        def _(indices, *, dtypes):
            return [()] + [None] * len(dtypes)

        for op_def in (self.size, self.incomplete_size):
            op_def.shape(lambda: ())

    def _add_kernels(self, ordered: bool) -> None:
        def of(waiter: Any, operation: Operation) -> StagingMap:
            attrs = operation.attrs
            return waiter.resources.find(
                operation,
                StagingMap,
                lambda shared: StagingMap(
                    shared, attrs["capacity"], attrs["memory_limit"], ordered
                ),
            )

        @self.put.kernel
        def _(xp, key, indices, values, *, waiter, operation, dtypes):
            staged = of(waiter, operation)
            return staged.put(int(key), indices.tolist(), values, len(dtypes), waiter)

        @self.get.kernel
        def _(xp, key, indices, *, waiter, operation):
            return of(waiter, operation).get(int(key), indices.tolist(), waiter)

        @self.peek.kernel
        def _(xp, key, indices, *, waiter, operation):
            return of(waiter, operation).peek(int(key), indices.tolist(), waiter)

        @self.get_any.kernel
        def _(xp, indices, *, waiter, operation):
            return of(waiter, operation).get_any(indices.tolist(), waiter)

        @self.size.kernel
        def _(xp, *, waiter, operation):
            return (np.int32(of(waiter, operation).size()),)

        @self.incomplete_size.kernel
        def _(xp, *, waiter, operation):
            return (np.int32(of(waiter, operation).incomplete_size()),)

        @self.clear.kernel
        def _(xp, *, waiter, operation):
            of(waiter, operation).clear()
            return ()


map_ops = MapOps("Map")
ordered_map_ops = MapOps("OrderedMap")
