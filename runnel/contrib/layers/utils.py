"""``tf.contrib.layers.utils`` and ``slim.utils``: outputs by name, shapes, conditionals."""

from __future__ import annotations

from typing import Any

from runnel.contrib.layers.scoping import (
    append_tensor_alias,
    collect_named_outputs,
    convert_collection_to_dict,
    get_tensor_aliases,
)
from runnel.control_flow.smart_cond import smart_cond, smart_constant_value
from runnel.graph.shapes import as_shape
from runnel.layers.windows import numbers

__all__ = [
    "append_tensor_alias",
    "collect_named_outputs",
    "constant_value",
    "convert_collection_to_dict",
    "first_dimension",
    "get_tensor_aliases",
    "last_dimension",
    "n_positive_integers",
    "smart_cond",
    "static_cond",
    "two_element_tuple",
]

constant_value = smart_constant_value


def static_cond(pred: Any, fn1: Any, fn2: Any) -> Any:
    """One or the other; ``pred`` is a Python value."""
    return fn1() if pred else fn2()


def _dimension(shape: Any, position: int, min_rank: int) -> int:
    size = as_shape(shape).with_rank_at_least(min_rank)[position].value
    if size is None:
        raise ValueError(f"dimension {position} of shape {shape} must be known but is None")
    return size


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The size of the last dimension, which must be known."""
    return _dimension(shape, -1, min_rank)


def first_dimension(shape: Any, min_rank: int = 1) -> int:
    """The size of the first dimension, which must be known."""
    return _dimension(shape, 0, min_rank)


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """One number twice, or the two numbers of a tuple."""
    first, second = numbers(int_or_tuple, 2, "int_or_tuple")
    return first, second


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """One number ``n`` times, or the ``n`` numbers of a sequence."""
    return numbers(value, n, "value")


def __dir__() -> list[str]:
    return __all__
