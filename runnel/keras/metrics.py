"""``tf.keras.metrics``: what is watched of a model beside its loss."""

from __future__ import annotations

from typing import Any

from runnel.keras.accuracy import (
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from runnel.keras.custom_objects import deserialize_keras_object, serialize_keras_object
from runnel.keras.loss_functions import (
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    categorical_crossentropy,
    categorical_hinge,
    cosine,
    cosine_proximity,
    cosine_similarity,
    hinge,
    kld,
    kullback_leibler_divergence,
    logcosh,
    mae,
    mape,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    mse,
    msle,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from runnel.keras.metric import Mean, MeanMetricWrapper, MeanTensor, Metric, Sum
from runnel.keras.metric_means import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanIoU,
    MeanRelativeError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SquaredHinge,
    TopKCategoricalAccuracy,
)
from runnel.keras.metric_thresholds import (
    AUC,
    FalseNegatives,
    FalsePositives,
    Precision,
    Recall,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)

_OTHERS: dict[str, Any] = {"cosine_similarity": cosine_similarity, "logcosh": logcosh}
_OTHERS |= {"categorical_hinge": categorical_hinge, "MeanMetricWrapper": MeanMetricWrapper}


def serialize(metric: Any) -> Any:
    """What stands for a metric in a configuration."""
    return serialize_keras_object(metric)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The metric that a name or a configuration stands for."""
    table = {name: globals()[name] for name in __all__ if name not in _FUNCTIONS}
    return deserialize_keras_object(config, {**table, **_OTHERS}, custom_objects, "metric function")


def get(identifier: Any) -> Any:
    """The metric that a name, a configuration or a function stands for.

    Example:
        >>> tf.keras.metrics.get("mae").__name__
        'mean_absolute_error'
    """
    if isinstance(identifier, str | dict):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret metric function identifier: {identifier!r}")


_FUNCTIONS = ("deserialize", "get", "serialize")
__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "KLD",
    "KLDivergence",
    "LogCoshError",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanRelativeError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "MeanTensor",
    "Metric",
    "Poisson",
    "Precision",
    "Recall",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "binary_crossentropy",
    "categorical_accuracy",
    "categorical_crossentropy",
    "cosine",
    "cosine_proximity",
    "deserialize",
    "get",
    "hinge",
    "kld",
    "kullback_leibler_divergence",
    "mae",
    "mape",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "mse",
    "msle",
    "poisson",
    "serialize",
    "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy",
    "squared_hinge",
    "top_k_categorical_accuracy",
]


def __dir__() -> list[str]:
    return __all__
