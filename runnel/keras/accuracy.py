"""Functions of labels and predictions that say how many predictions are right."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, int32
from runnel.graph.operation import Tensor
from runnel.keras.backend_tensors import argmax
from runnel.ops.array_shape import squeeze
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater
from runnel.ops.reduce_functions import reduce_mean
from runnel.ops.top_k import in_top_k


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where labels and predictions are equal."""
    true = convert_to_tensor(y_true)
    return cast(equal(true, cast(y_pred, true.dtype)), float32)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """The share of predictions on the right side of ``threshold``."""
    predicted = convert_to_tensor(y_pred)
    kind = predicted.dtype.base_dtype
    above = cast(greater(predicted, threshold), kind)
    return reduce_mean(cast(equal(cast(y_true, kind), above), float32), axis=-1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where the largest prediction is that of the one-hot label."""
    return cast(equal(argmax(y_true, axis=-1), argmax(y_pred, axis=-1)), float32)


def _numbers(y_true: Any, predicted: Tensor) -> Tensor:
    true = convert_to_tensor(y_true)
    same = true.dims is not None and predicted.dims is not None
    if same and len(true.dims or ()) == len(predicted.dims or ()):
        return squeeze(true, [-1])
    return true


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where the largest prediction is that of the label, which is the number of a class."""
    predicted = convert_to_tensor(y_pred)
    true = _numbers(y_true, predicted)
    found = cast(argmax(predicted, axis=-1), true.dtype.base_dtype)
    return cast(equal(true, found), float32)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """1 where the one-hot label is among the ``k`` largest predictions."""
    return cast(in_top_k(y_pred, argmax(y_true, axis=-1), k), float32)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """1 where the label, the number of a class, is among the ``k`` largest predictions."""
    predicted = convert_to_tensor(y_pred)
    return cast(in_top_k(predicted, cast(_numbers(y_true, predicted), int32), k), float32)
