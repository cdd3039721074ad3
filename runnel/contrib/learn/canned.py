"""``tf.contrib.learn.DNNClassifier`` and its kin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runnel.contrib.learn.estimator import Estimator
from runnel.contrib.learn.heads import Head, multi_class_head, regression_head
from runnel.contrib.learn.keys import PredictionKey
from runnel.contrib.learn.model_fn_ops import ModelFnOps
from runnel.contrib.learn.model_functions import build
from runnel.ops.activations import relu


class _Canned(Estimator):
    """An estimator of a head and the parts of a model."""

    def __init__(
        self,
        head: Head,
        model_dir: Any,
        config: Any,
        feature_engineering_fn: Any,
        linear: dict[str, Any] | None = None,
        dnn: dict[str, Any] | None = None,
        clip_norm: float | None = None,
        counts_once: bool = True,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            return build(features, labels, mode, head, linear, dnn, clip_norm, counts_once)

        super().__init__(model_fn, model_dir, config, None, feature_engineering_fn)


class _Classifier(_Canned):
    """A model whose ``predict`` gives classes."""

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The classes; with ``outputs``, dictionaries of those predictions."""
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)
        return self.predict_classes(x, input_fn, batch_size, as_iterable)

    def predict_classes(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The class of each row."""
        return self._one(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The probabilities of the classes, for each row."""
        return self._one(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)

    def _one(self, key: str, x: Any, input_fn: Any, batch_size: Any, as_iterable: bool) -> Any:
        return _one(super().predict(x, input_fn, batch_size, [key], as_iterable), key, as_iterable)


class _Regressor(_Canned):
    """A model whose ``predict`` gives numbers."""

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The numbers; with ``outputs``, dictionaries of those predictions."""
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)
        return self.predict_scores(x, input_fn, batch_size, as_iterable)

    def predict_scores(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The number, or numbers, of each row."""
        key = PredictionKey.SCORES
        return _one(super().predict(x, input_fn, batch_size, [key], as_iterable), key, as_iterable)


def _one(found: Any, key: str, as_iterable: bool) -> Any:
    return _values(found, key) if as_iterable else found[key]


def _values(rows: Any, key: str) -> Iterator[Any]:
    for row in rows:
        yield row[key]


def _linear(columns: Any, optimizer: Any) -> dict[str, Any]:
    given = list(columns or ())
    if not given:
        raise ValueError("feature_columns must not be empty.")
    return {"columns": given, "optimizer": optimizer}


def _dnn(
    columns: Any, hidden_units: Sequence[int], optimizer: Any, activation_fn: Any, dropout: Any
) -> dict[str, Any]:
    return {
        "columns": list(columns or ()),
        "hidden_units": list(hidden_units),
        "optimizer": optimizer,
        "activation_fn": activation_fn,
        "dropout": dropout,
    }


def _no_multipliers(given: Any) -> None:
    if given:
        raise NotImplementedError("Rates of single embeddings are not there: give an optimizer")


class LinearClassifier(_Classifier):
    """Classes by a weighted sum of columns.

    Example:
        >>> model = tf.contrib.learn.LinearClassifier([tf.contrib.layers.real_valued_column("x")])
        >>> model.fit(input_fn=input_fn, steps=100)
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_keys: Any = None,
    ) -> None:
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn),
            *(_linear(feature_columns, optimizer), None, gradient_clip_norm),
        )


class LinearRegressor(_Regressor):
    """Numbers by a weighted sum of columns."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn),
            *(_linear(feature_columns, optimizer), None, gradient_clip_norm),
        )


class LinearEstimator(_Canned):
    """A weighted sum of columns, for any head."""

    def __init__(
        self,
        feature_columns: Any,
        head: Head,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn),
            *(_linear(feature_columns, optimizer), None, gradient_clip_norm),
        )


class DNNClassifier(_Classifier):
    """Classes by a network of fully connected layers.

    Example:
        >>> model = tf.contrib.learn.DNNClassifier([10, 20, 10], columns, n_classes=3)
        >>> model.fit(x, y, steps=200)
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        part = _dnn(feature_columns, hidden_units, optimizer, activation_fn, dropout)
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, None, part, gradient_clip_norm)
        )


class DNNRegressor(_Regressor):
    """Numbers by a network of fully connected layers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        part = _dnn(feature_columns, hidden_units, optimizer, activation_fn, dropout)
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, None, part, gradient_clip_norm)
        )


class DNNEstimator(_Canned):
    """A network of fully connected layers, for any head."""

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = None,
        activation_fn: Any = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        part = _dnn(feature_columns, hidden_units, optimizer, activation_fn, dropout)
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, None, part, gradient_clip_norm)
        )


def _both(
    linear: tuple[Any, Any], dnn: tuple[Any, Any, Any, Any, Any]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The parts that have columns: a wide one, a deep one, or both."""
    if dnn[0] and not dnn[1]:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    if not (linear[0] or dnn[0]):
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    return _linear(*linear) if linear[0] else None, _dnn(*dnn) if dnn[0] else None


class DNNLinearCombinedClassifier(_Classifier):
    """Classes by a linear model and a deep one together (Cheng et al. 2016).

    As in TensorFlow, each of the two parts adds one to the global step in every step, unless
    ``fix_global_step_increment_bug``.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        parts = _both(
            (linear_feature_columns, linear_optimizer),
            (dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn, dnn_dropout),
        )
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, *parts, gradient_clip_norm),
            counts_once=fix_global_step_increment_bug,
        )


class DNNLinearCombinedRegressor(_Regressor):
    """Numbers by a linear model and a deep one together."""

    def __init__(
        self,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        parts = _both(
            (linear_feature_columns, linear_optimizer),
            (dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn, dnn_dropout),
        )
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, *parts, gradient_clip_norm),
            counts_once=fix_global_step_increment_bug,
        )


class DNNLinearCombinedEstimator(_Canned):
    """A linear model and a deep one together, for any head."""

    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        _no_multipliers(embedding_lr_multipliers)
        parts = _both(
            (linear_feature_columns, linear_optimizer),
            (dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn, dnn_dropout),
        )
        super().__init__(
            *(head, model_dir, config, feature_engineering_fn, *parts, gradient_clip_norm),
            counts_once=fix_global_step_increment_bug,
        )
