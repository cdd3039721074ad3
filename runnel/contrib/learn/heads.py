"""Heads: what a model's logits mean, their loss, and how good they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel import metrics
from runnel.contrib.layers.fully_connected import linear
from runnel.contrib.learn.keys import MetricKey, ModeKeys, PredictionKey
from runnel.contrib.learn.model_fn_ops import ModelFnOps
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, int64, string
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.arithmetic import squared_difference
from runnel.ops.array_shape import expand_dims, reshape, shape, squeeze
from runnel.ops.bias import bias_add
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, greater_equal
from runnel.ops.control import group
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.elementwise import exp, sigmoid
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.lookup.initializers import KeyValueTensorInitializer
from runnel.ops.lookup.tables import StaticHashTable
from runnel.ops.padding import tile
from runnel.ops.ranges import range as numbers_to
from runnel.ops.reduce_functions import reduce_mean, reduce_sum
from runnel.ops.sampling.likelihood import (
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
)
from runnel.ops.softmax import softmax
from runnel.summary import scalar
from runnel.train.adagrad import AdagradOptimizer
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import variable_scope

_CENTRED_BIAS_RATE = 0.1


class Head:
    """What logits of ``logits_dimension`` numbers mean; subclasses say how."""

    logits_dimension: int
    default_scope = "head"

    def __init__(
        self,
        label_name: str | None = None,
        weight_column_name: str | None = None,
        enable_centered_bias: bool = False,
        head_name: str | None = None,
        loss_fn: Callable[..., Any] | None = None,
    ) -> None:
        self._label_name = label_name
        self._weight_column_name = weight_column_name
        self._has_centred_bias = enable_centered_bias
        self._loss_fn = loss_fn
        self.head_name = head_name

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """What a model says, by name."""
        raise NotImplementedError

    def labels(self, labels: Tensor) -> Tensor:
        """Labels as the loss needs them."""
        return labels

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example, [batch, 1]."""
        raise NotImplementedError

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        """How good predictions are."""
        return {}

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """The operations of a model with ``logits``, or with a last layer over ``logits_input``.

        ``train_op_fn`` makes the operation that trains, of the loss.
        """
        values = list(features.values()) if isinstance(features, Mapping) else [features]
        with variable_scope(scope, self.head_name or self.default_scope, values):
            if (logits is None) == (logits_input is None):
                raise ValueError("Exactly one of logits and logits_input must be provided.")
            if logits is None:
                logits = linear(logits_input, self.logits_dimension, scope="logits")
            bias = self._centred_bias() if self._has_centred_bias else None
            if bias is not None:
                logits = bias_add(logits, bias)
            made = self.predictions(logits)
            if mode == ModeKeys.INFER or labels is None:
                if mode != ModeKeys.INFER:
                    raise ValueError("Training and evaluation need labels, but there are none")
                return ModelFnOps(mode, predictions=made)
            wanted = self.labels(self._label_tensor(labels))
            weights = self._weights(features)
            loss, average = self._loss(logits, wanted, weights)
            scalar(f"loss/{self.head_name}" if self.head_name else "loss", average)
            if mode == ModeKeys.EVAL:
                found = self.metrics(made, wanted, weights)
                if self.head_name:
                    found = {f"{name}/{self.head_name}": pair for name, pair in found.items()}
                return ModelFnOps(mode, made, average, eval_metric_ops=found)
            if train_op_fn is None:
                raise ValueError("train_op_fn can not be None in TRAIN mode")
            train_op = train_op_fn(loss)
            if bias is not None:
                train_op = group(train_op, self._train_bias(bias, wanted, weights))
            return ModelFnOps(mode, made, loss, train_op)

    def _label_tensor(self, labels: Any) -> Tensor:
        if isinstance(labels, Mapping):
            if self._label_name is None:
                if len(labels) != 1:
                    raise ValueError(
                        f"label_name must say which of the labels {sorted(labels)} is meant"
                    )
                labels = next(iter(labels.values()))
            else:
                labels = labels[self._label_name]
        if isinstance(labels, SparseTensor):
            raise ValueError("Labels must be dense, not a SparseTensor")
        return convert_to_tensor(labels)

    def _weights(self, features: Any) -> Any:
        if self._weight_column_name is None:
            return None
        found = features[self._weight_column_name]
        return cast(reshape(found, [-1, 1]), float32)

    def _loss(self, logits: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
        """The loss that is trained, and the average that is reported."""
        if self._loss_fn is not None:
            found = convert_to_tensor(self._loss_fn(labels, logits))
            each = found if found.shape.rank else reshape(found, [1])
        else:
            each = self.losses(logits, labels)
        if weights is None:
            mean = reduce_mean(each)
            return mean, mean
        weighted = each * weights
        loss = reduce_mean(weighted)
        return loss, loss / reduce_mean(weights)

    def _centred_bias(self) -> Any:
        return get_variable(
            "centered_bias_weight",
            shape=[self.logits_dimension],
            initializer=Zeros(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
        )

    def _train_bias(self, bias: Any, labels: Tensor, weights: Any) -> Any:
        rows = shape(labels)[0]
        logits = reshape(
            tile(bias, [rows]), stack([rows, convert_to_tensor(self.logits_dimension)])
        )
        loss, _ = self._loss(logits, labels, weights)
        return AdagradOptimizer(_CENTRED_BIAS_RATE).minimize(loss, var_list=[bias])


def _column(labels: Tensor) -> Tensor:
    return expand_dims(labels, -1) if labels.shape.rank == 1 else labels


class RegressionHead(Head):
    """Numbers, by their squared error."""

    default_scope = "regression_head"

    def __init__(self, label_dimension: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.logits_dimension = label_dimension

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {PredictionKey.SCORES: self.linked(_single(logits, self.logits_dimension))}

    def linked(self, scores: Tensor) -> Tensor:
        """Logits as numbers of the labels' kind."""
        return scores

    def labels(self, labels: Tensor) -> Tensor:
        return cast(_column(labels), float32)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return squared_difference(logits, labels)


def _single(logits: Tensor, dimension: int) -> Tensor:
    return squeeze(logits, [1]) if dimension == 1 else logits


class PoissonHead(RegressionHead):
    """Counts: the logits are the logarithm of the expected number."""

    default_scope = "poisson_regression_head"

    def linked(self, scores: Tensor) -> Tensor:
        return exp(scores)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return log_poisson_loss(labels, logits, compute_full_loss=False)


class BinaryHead(Head):
    """One of two classes, by a sigmoid."""

    default_scope = "binary_logistic_head"
    logits_dimension = 1

    def __init__(self, thresholds: Sequence[float] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._thresholds = list(thresholds or [0.5])

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        both = concat([zeros_like(logits), logits], 1)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: sigmoid(logits),
            PredictionKey.PROBABILITIES: softmax(both),
            PredictionKey.CLASSES: argmax(both, axis=1),
        }

    def labels(self, labels: Tensor) -> Tensor:
        return cast(_column(labels), float32)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        logistic = predictions[PredictionKey.LOGISTIC]
        classes = expand_dims(predictions[PredictionKey.CLASSES], -1)
        found = {
            MetricKey.ACCURACY: metrics.accuracy(labels, classes, weights),
            MetricKey.PREDICTION_MEAN: metrics.mean(logistic, weights),
            MetricKey.LABEL_MEAN: metrics.mean(labels, weights),
            MetricKey.ACCURACY_BASELINE: metrics.mean(labels, weights),
            MetricKey.AUC: metrics.auc(labels, logistic, weights),
            MetricKey.AUC_PR: metrics.auc(labels, logistic, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            above = cast(greater_equal(logistic, threshold), int64)
            precision = metrics.precision_at_thresholds(labels, logistic, [threshold], weights)
            recall = metrics.recall_at_thresholds(labels, logistic, [threshold], weights)
            found[MetricKey.ACCURACY_MEAN % threshold] = metrics.accuracy(labels, above, weights)
            found[MetricKey.PRECISION_MEAN % threshold] = _only(precision)
            found[MetricKey.RECALL_MEAN % threshold] = _only(recall)
        return found


def _only(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return squeeze(pair[0]), pair[1]


class BinarySvmHead(Head):
    """One of two classes, by the hinge loss."""

    default_scope = "binary_svm_head"
    logits_dimension = 1

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.CLASSES: cast(greater(squeeze(logits, [1]), 0.0), int64),
        }

    def labels(self, labels: Tensor) -> Tensor:
        return cast(_column(labels), float32)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        from runnel.losses import Reduction, hinge_loss

        return hinge_loss(labels, logits, reduction=Reduction.NONE)  # type: ignore[no-any-return]

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        classes = expand_dims(predictions[PredictionKey.CLASSES], -1)
        return {MetricKey.ACCURACY: metrics.accuracy(labels, classes, weights)}


class MultiClassHead(Head):
    """One of three classes or more, by a softmax."""

    default_scope = "multi_class_head"

    def __init__(self, n_classes: int, label_keys: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.logits_dimension = n_classes
        self._words = list(label_keys) if label_keys else None
        if self._words is not None and len(self._words) != n_classes:
            raise ValueError("Length of label_keys must equal n_classes.")

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        classes = argmax(logits, axis=1)
        if self._words is not None:
            classes = gather(convert_to_tensor(self._words, string), classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: softmax(logits),
            PredictionKey.CLASSES: classes,
        }

    def labels(self, labels: Tensor) -> Tensor:
        if self._words is not None:
            words = convert_to_tensor(self._words, string)
            places = numbers_to(len(self._words), dtype=int64)
            labels = StaticHashTable(KeyValueTensorInitializer(words, places), -1).lookup(labels)
        if not labels.dtype.base_dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        return cast(_column(labels), int64)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        found = sparse_softmax_cross_entropy_with_logits(labels=squeeze(labels, [1]), logits=logits)
        return expand_dims(found, -1)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        classes = expand_dims(argmax(predictions[PredictionKey.LOGITS], axis=1), -1)
        return {MetricKey.ACCURACY: metrics.accuracy(labels, classes, weights)}


class MultiLabelHead(Head):
    """Any of several classes, each by a sigmoid."""

    default_scope = "multi_label_head"

    def __init__(self, n_classes: int, **options: Any) -> None:
        super().__init__(**options)
        self.logits_dimension = n_classes

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: sigmoid(logits),
            PredictionKey.CLASSES: cast(greater(logits, 0.0), int64),
        }

    def labels(self, labels: Tensor) -> Tensor:
        return cast(labels, float32)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        found = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return reduce_sum(found, 1, keepdims=True)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        classes, chances = (
            predictions[PredictionKey.CLASSES],
            predictions[PredictionKey.PROBABILITIES],
        )
        return {
            MetricKey.ACCURACY: metrics.accuracy(labels, classes, weights),
            MetricKey.AUC: metrics.auc(labels, chances, weights),
            MetricKey.AUC_PR: metrics.auc(labels, chances, weights, curve="PR"),
        }


# Made by users ------------------------------------------------------------------------------------


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
    metric_class_ids: Any = None,
    loss_fn: Callable[..., Any] | None = None,
    label_keys: Any = None,
) -> Head:
    """The head of one of ``n_classes`` classes."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    if metric_class_ids:
        raise NotImplementedError("multi_class_head has no metrics for single classes")
    options = (label_name, weight_column_name, enable_centered_bias, head_name, loss_fn)
    named = _named(options)
    if n_classes == 2:
        if label_keys:
            raise ValueError("label_keys is not supported for n_classes=2.")
        return BinaryHead(thresholds, **named)
    return MultiClassHead(n_classes, label_keys, **named)


_OPTIONS = ("label_name", "weight_column_name", "enable_centered_bias", "head_name", "loss_fn")


def _named(options: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(_OPTIONS, options, strict=True))


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Any = None,
) -> Head:
    """The head of numbers."""
    options = (label_name, weight_column_name, enable_centered_bias, head_name, None)
    made = RegressionHead(label_dimension, **_named(options))
    if link_fn is not None:
        made.linked = link_fn  # type: ignore[method-assign]
    return made


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """The head of counts."""
    options = (label_name, weight_column_name, enable_centered_bias, head_name, None)
    return PoissonHead(label_dimension, **_named(options))


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
) -> Head:
    """The head of one of two classes, by the hinge loss."""
    options = (label_name, weight_column_name, enable_centered_bias, head_name, None)
    return BinarySvmHead(**_named(options))


def multi_label_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Callable[..., Any] | None = None,
) -> Head:
    """The head of any of ``n_classes`` classes."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    options = (label_name, weight_column_name, enable_centered_bias, head_name, loss_fn)
    return MultiLabelHead(n_classes, **_named(options))


def no_op_train_fn(loss: Any) -> Any:
    """A ``train_op_fn`` that does nothing."""
    from runnel.ops.control import no_op

    return no_op()
