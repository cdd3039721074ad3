"""``tf.contrib.learn.models``: the last layer of a model with its loss."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.losses import mean_squared_error, softmax_cross_entropy
from runnel.ops.array_shape import squeeze
from runnel.ops.bias import xw_plus_b
from runnel.ops.softmax import softmax
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import RandomNormal
from runnel.variables.variable_scope import variable_scope

__all__ = [
    "linear_regression",
    "linear_regression_zero_init",
    "logistic_regression",
    "logistic_regression_zero_init",
]


def _variables(dims: list[int], init_mean: float | None, init_stddev: float) -> tuple[Any, Any]:
    start = None if init_mean is None else RandomNormal(init_mean, init_stddev)
    return (
        get_variable("weights", dims, initializer=start),
        get_variable("bias", dims[1:], initializer=start),
    )


def linear_regression(
    x: Any, y: Any, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Any, Any]:
    """What a linear model predicts of ``x``, and the mean squared error from ``y``."""
    inputs, labels = convert_to_tensor(x), convert_to_tensor(y)
    outputs = 1 if labels.shape.rank == 1 else labels.shape[1].value
    with variable_scope("linear_regression"):
        weights, bias = _variables([inputs.shape[1].value, outputs], init_mean, init_stddev)
        found = xw_plus_b(inputs, weights, bias)
        if labels.shape.rank == 1:
            found = squeeze(found, [1])
        return found, mean_squared_error(labels, found)


def linear_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """:func:`linear_regression` that begins with zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def logistic_regression(
    x: Any,
    y: Any,
    class_weight: Any = None,
    init_mean: float | None = None,
    init_stddev: float = 1.0,
) -> tuple[Any, Any]:
    """The probabilities of classes, and the cross entropy from the one-hot labels ``y``."""
    inputs, labels = convert_to_tensor(x), convert_to_tensor(y)
    with variable_scope("logistic_regression"):
        classes = labels.shape[1].value
        weights, bias = _variables([inputs.shape[1].value, classes], init_mean, init_stddev)
        logits = xw_plus_b(inputs, weights, bias)
        if class_weight is not None:
            logits = logits * convert_to_tensor(class_weight)
        return softmax(logits), softmax_cross_entropy(labels, logits)


def logistic_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """:func:`logistic_regression` that begins with zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)


def __dir__() -> list[str]:
    return __all__
