"""Examples of operations on lists of tensors: what is in them is fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.exchange import Builder, Example, Steps

FLOAT = 1
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
PAIR, ROW = np.array([2], np.int32), np.array([7.0, 8.0], np.float32)
PARTS, LENGTHS = np.array([-1, 2], np.int32), np.array([1, 2], np.int64)


def of_rows(b: Builder) -> str:
    return b.one("TensorListFromTensor", ROWS, PAIR)


def stacked(b: Builder, made: str) -> list[str]:
    return b.op("TensorListStack", made, PAIR, element_dtype=FLOAT)


def made_by(*inputs: Any, **attrs: Any) -> Callable[[str], Example]:
    """A list that is made of tensors."""

    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            made = b.one(op_type, *inputs, **attrs)
            return [stacked(b, made), b.op("TensorListLength", made)]

        return example

    return example_for


def made_of_rows(*inputs: Any, **attrs: Any) -> Callable[[str], Example]:
    """A list that is made of another."""

    def example_for(op_type: str) -> Example:
        return lambda b: [stacked(b, b.one(op_type, of_rows(b), *inputs, **attrs))]

    return example_for


def read(*inputs: Any, **attrs: Any) -> Callable[[str], Example]:
    """Tensors that are read out of a list."""

    def example_for(op_type: str) -> Example:
        return lambda b: [b.op(op_type, of_rows(b), *inputs, **attrs)]

    return example_for


def popped(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        left, last = b.op(op_type, of_rows(b), PAIR, element_dtype=FLOAT)
        return [[last], stacked(b, left)]

    return example


def parts(op_type: str) -> Example:
    """A tensor cut and put together."""

    def example(b: Builder) -> Steps:
        made = b.one("TensorListSplit", ROWS, PARTS, LENGTHS)
        return [b.op("TensorListConcatV2", made, PARTS, LENGTHS, element_dtype=FLOAT)]

    return example


def empty(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        made = b.one(op_type, PAIR, -1, element_dtype=FLOAT)
        return [b.op("TensorListLength", made), stacked(b, made)]

    return example


EXAMPLES: dict[str, Any] = {
    "EmptyTensorList": empty,
    "TensorListReserve": made_by(PAIR, 2, element_dtype=FLOAT),
    "TensorListFromTensor": made_by(ROWS, PAIR),
    "TensorListScatterV2": made_by(ROWS, np.array([3, 0, 1], np.int32), PAIR, 4),
    "TensorListSetItem": made_of_rows(1, ROW),
    "TensorListPushBack": made_of_rows(ROW),
    "TensorListResize": [made_of_rows(2), made_of_rows(4)],
    "TensorListStack": read(PAIR, element_dtype=FLOAT),
    "TensorListGetItem": read(2, PAIR, element_dtype=FLOAT),
    "TensorListGather": read(np.array([2, 0], np.int32), PAIR, element_dtype=FLOAT),
    "TensorListLength": read(),
    "TensorListElementShape": read(shape_type=3),
    "TensorListPopBack": popped,
    "TensorListSplit": parts,
    "TensorListConcatV2": parts,
}
