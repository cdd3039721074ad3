"""``tf.estimator.DNNClassifier`` and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.estimator.canned.heads import Head, RegressionHead, class_head
from runnel.estimator.canned.model_functions import (
    COMBINED_DNN_LEARNING_RATE,
    COMBINED_LINEAR_LEARNING_RATE,
    DNN_LEARNING_RATE,
    LINEAR_LEARNING_RATE,
    build,
    linear_learning_rate,
)
from runnel.estimator.estimator import Estimator
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.losses import Reduction
from runnel.ops.activations import relu


class _Canned(Estimator):
    """An estimator of a head and the parts of a model."""

    def __init__(
        self,
        head: Head,
        parts: dict[str, Any],
        model_dir: Any,
        config: Any,
        warm_start_from: Any,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            return build(features, labels, mode, head, **parts)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


def _linear_part(
    columns: Any,
    optimizer: Any,
    partitioner: Any,
    combiner: str,
    rate: float = LINEAR_LEARNING_RATE,
) -> dict[str, Any]:
    given = list(columns)
    if not given:
        raise ValueError("feature_columns must not be empty.")
    return {
        "columns": given,
        "optimizer": optimizer,
        "learning_rate": linear_learning_rate(given, rate),
        "partitioner": partitioner,
        "combiner": combiner,
    }


def _dnn_part(
    columns: Any,
    hidden_units: Sequence[int],
    optimizer: Any,
    activation_fn: Any,
    dropout: float | None,
    batch_norm: bool,
    partitioner: Any,
    rate: float = DNN_LEARNING_RATE,
) -> dict[str, Any]:
    return {
        "columns": list(columns),
        "hidden_units": list(hidden_units),
        "optimizer": optimizer,
        "learning_rate": rate,
        "activation_fn": activation_fn,
        "dropout": dropout,
        "batch_norm": batch_norm,
        "partitioner": partitioner,
    }


class LinearClassifier(_Canned):
    """Classes by a weighted sum of columns.

    Example:
        >>> model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")])
        >>> model.train(input_fn, steps=100)
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = class_head(
            *(n_classes, label_vocabulary),
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        part = _linear_part(feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(head, {"linear": part}, model_dir, config, warm_start_from)


class LinearRegressor(_Canned):
    """Numbers by a weighted sum of columns."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(
            label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        part = _linear_part(feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(head, {"linear": part}, model_dir, config, warm_start_from)


class DNNClassifier(_Canned):
    """Classes by a network of fully connected layers.

    Example:
        >>> model = tf.estimator.DNNClassifier([10, 10], columns, n_classes=3)
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = class_head(
            *(n_classes, label_vocabulary),
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        part = _dnn_part(
            *(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm),
            input_layer_partitioner,
        )
        super().__init__(head, {"dnn": part}, model_dir, config, warm_start_from)


class DNNRegressor(_Canned):
    """Numbers by a network of fully connected layers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(
            label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        part = _dnn_part(
            *(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm),
            input_layer_partitioner,
        )
        super().__init__(head, {"dnn": part}, model_dir, config, warm_start_from)


def _both_parts(
    linear: tuple[Any, Any, str], dnn: tuple[Any, Any, Any, Any, Any, bool], partitioner: Any
) -> dict[str, Any]:
    """The parts that have columns: a wide one, a deep one, or both."""
    parts: dict[str, Any] = {}
    linear_columns, linear_optimizer, combiner = linear
    columns, units, optimizer, activation_fn, dropout, batch_norm = dnn
    if columns:
        if not units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is given")
        parts["dnn"] = _dnn_part(
            *(columns, units, optimizer, activation_fn, dropout, batch_norm, partitioner),
            rate=COMBINED_DNN_LEARNING_RATE,
        )
    if linear_columns:
        parts["linear"] = _linear_part(
            *(linear_columns, linear_optimizer, partitioner, combiner),
            rate=COMBINED_LINEAR_LEARNING_RATE,
        )
    if not parts:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    return parts


class DNNLinearCombinedClassifier(_Canned):
    """Classes by a linear model and a deep one together (Cheng et al. 2016)."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = class_head(
            *(n_classes, label_vocabulary),
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        parts = _both_parts(
            (linear_feature_columns, linear_optimizer, linear_sparse_combiner),
            (
                *(dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn),
                *(dnn_dropout, batch_norm),
            ),
            input_layer_partitioner,
        )
        super().__init__(head, parts, model_dir, config, warm_start_from)


class DNNLinearCombinedRegressor(_Canned):
    """Numbers by a linear model and a deep one together."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(
            label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        parts = _both_parts(
            (linear_feature_columns, linear_optimizer, linear_sparse_combiner),
            (
                *(dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn),
                *(dnn_dropout, batch_norm),
            ),
            input_layer_partitioner,
        )
        super().__init__(head, parts, model_dir, config, warm_start_from)
