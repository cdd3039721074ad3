"""Heads: what a model's logits mean, their loss, and how good they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import losses, metrics
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.export_output import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from runnel.estimator.mode_keys import ModeKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, int64, string
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.arithmetic import maximum, squared_difference
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.elementwise import sigmoid
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.lookup.initializers import KeyValueTensorInitializer
from runnel.ops.lookup.tables import StaticHashTable
from runnel.ops.padding import tile
from runnel.ops.ranges import range as numbers_to
from runnel.ops.reduce_functions import reduce_mean, reduce_sum
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.softmax import softmax
from runnel.ops.strings.conversions import as_string
from runnel.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from runnel.summary import scalar


class Head:
    """What logits of ``logits_dimension`` numbers mean; subclasses say how."""

    logits_dimension: int

    def __init__(
        self, weight_column: Any = None, loss_reduction: str = losses.Reduction.SUM
    ) -> None:
        self._weight_column = weight_column
        self._reduction = loss_reduction

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """What a model says, by name."""
        raise NotImplementedError

    def exports(self, predictions: dict[str, Tensor]) -> dict[str, Any]:
        """The signatures of an exported model."""
        raise NotImplementedError

    def labels(self, labels: Tensor) -> Tensor:
        """Labels as the loss takes them, [batch, 1] or more."""
        raise NotImplementedError

    def element_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example, [batch, 1]."""
        raise NotImplementedError

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        """How good the predictions are."""
        raise NotImplementedError

    def _weights(self, features: Any) -> Tensor | None:
        column = self._weight_column
        if column is None:
            return None
        key = column if isinstance(column, str) else column.key
        found = cast(features[key], float32)
        made = found if isinstance(column, str) or column.normalizer_fn is None else None
        if made is None:
            made = convert_to_tensor(column.normalizer_fn(found))
        return expand_dims(made, -1) if made.shape.rank == 1 else made

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Tensor,
        labels: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """What a ``model_fn`` returns."""
        with name_scope("head"):
            made = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                exports = self.exports(made)
                return EstimatorSpec(mode, predictions=made, export_outputs=exports)
            if labels is None:
                raise ValueError(
                    "You must provide a labels Tensor. Given: None. The input_fn of training and "
                    "evaluation returns (features, labels)"
                )
            wanted = self.labels(convert_to_tensor(labels))
            weights = self._weights(features)
            each = self.element_losses(logits, wanted)
            loss = losses.compute_weighted_loss(
                each, 1.0 if weights is None else weights, reduction=self._reduction
            )
            total = loss
            if regularization_losses:
                total = loss + reduce_sum(convert_to_tensor(regularization_losses))
            if mode == ModeKeys.EVAL:
                found = {
                    "average_loss": metrics.mean(each, weights),
                    **self.metrics(made, wanted, weights),
                }
                return EstimatorSpec(mode, predictions=made, loss=total, eval_metric_ops=found)
            if train_op_fn is None:
                raise ValueError("train_op_fn cannot be None.")
            scalar("loss", total)
            scalar("average_loss", reduce_mean(each))
            return EstimatorSpec(mode, predictions=made, loss=total, train_op=train_op_fn(total))


def _column(labels: Tensor) -> Tensor:
    return expand_dims(labels, -1) if labels.shape.rank == 1 else labels


class _ClassHead(Head):
    """What the heads of classes share: names of classes, and the signatures."""

    def __init__(self, n_classes: int, vocabulary: Any, **options: Any) -> None:
        super().__init__(**options)
        self._n_classes = n_classes
        self._vocabulary = list(vocabulary) if vocabulary else None
        if self._vocabulary is not None and len(self._vocabulary) != n_classes:
            raise ValueError(
                f"The label_vocabulary has {len(self._vocabulary)} entries for {n_classes} classes"
            )

    def labels(self, labels: Tensor) -> Tensor:
        ids = _column(labels)
        if self._vocabulary is not None:
            words = convert_to_tensor(self._vocabulary, string)
            places = numbers_to(self._n_classes, dtype=int64)
            table = StaticHashTable(KeyValueTensorInitializer(words, places), -1)
            return table.lookup(ids)
        if ids.dtype.base_dtype is string:
            raise ValueError("Labels that are strings need a label_vocabulary")
        return ids

    def _class_names(self, class_ids: Tensor) -> Tensor:
        if self._vocabulary is None:
            return as_string(class_ids)
        return gather(convert_to_tensor(self._vocabulary, string), class_ids)

    def _named(self, scores: dict[str, Tensor], class_ids: Tensor) -> dict[str, Tensor]:
        ids = expand_dims(class_ids, -1)
        every = expand_dims(numbers_to(self._n_classes), 0)
        rows = concat([shape(ids)[:1], [1]], 0)
        return {
            **scores,
            "class_ids": ids,
            "classes": self._class_names(ids),
            "all_class_ids": tile(every, rows),
            "all_classes": tile(self._class_names(every), rows),
        }

    def exports(self, predictions: dict[str, Tensor]) -> dict[str, Any]:
        classified = ClassificationOutput(
            scores=predictions["probabilities"], classes=predictions["all_classes"]
        )
        found = {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: classified,
            "classification": classified,
            "predict": PredictOutput(predictions),
        }
        if "logistic" in predictions:
            found["regression"] = RegressionOutput(predictions["logistic"])
        return found


class MultiClassHead(_ClassHead):
    """One of three classes or more, by a softmax."""

    def __init__(self, n_classes: int, label_vocabulary: Any = None, **options: Any) -> None:
        super().__init__(n_classes, label_vocabulary, **options)
        self.logits_dimension = n_classes

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        scores = {"logits": logits, "probabilities": softmax(logits)}
        return self._named(scores, argmax(logits, axis=-1))

    def labels(self, labels: Tensor) -> Tensor:
        return cast(super().labels(labels), int64)

    def element_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        found = sparse_softmax_cross_entropy_with_logits(
            labels=reshape(labels, [-1]), logits=logits
        )
        return expand_dims(found, -1)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        return {"accuracy": metrics.accuracy(labels, predictions["class_ids"], weights)}


class BinaryClassHead(_ClassHead):
    """One of two classes, by a sigmoid."""

    logits_dimension = 1

    def __init__(self, label_vocabulary: Any = None, **options: Any) -> None:
        super().__init__(2, label_vocabulary, **options)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        both = concat([zeros_like(logits), logits], -1)
        scores = {
            "logits": logits,
            "logistic": sigmoid(logits),
            "probabilities": softmax(both),
        }
        return self._named(scores, argmax(both, axis=-1))

    def labels(self, labels: Tensor) -> Tensor:
        return cast(super().labels(labels), float32)

    def element_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        logistic, ids = predictions["logistic"], predictions["class_ids"]
        mean_label = metrics.mean(labels, weights)
        baseline = tuple(maximum(part, 1 - part) for part in mean_label)
        return {
            "accuracy": metrics.accuracy(labels, ids, weights),
            "precision": metrics.precision(labels, ids, weights),
            "recall": metrics.recall(labels, ids, weights),
            "prediction/mean": metrics.mean(logistic, weights),
            "label/mean": mean_label,
            "accuracy_baseline": baseline,
            "auc": metrics.auc(labels, logistic, weights),
            "auc_precision_recall": metrics.auc(
                labels, logistic, weights, curve="PR", summation_method="careful_interpolation"
            ),
        }


class RegressionHead(Head):
    """Numbers, by their squared error."""

    def __init__(self, label_dimension: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.logits_dimension = label_dimension

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {"predictions": identity(logits, name="predictions")}

    def exports(self, predictions: dict[str, Tensor]) -> dict[str, Any]:
        value = RegressionOutput(predictions["predictions"])
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: value,
            "regression": value,
            "predict": PredictOutput(predictions),
        }

    def labels(self, labels: Tensor) -> Tensor:
        return cast(_column(labels), float32)

    def element_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return squared_difference(labels, logits)

    def metrics(
        self, predictions: dict[str, Tensor], labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        return {
            "prediction/mean": metrics.mean(predictions["predictions"], weights),
            "label/mean": metrics.mean(labels, weights),
        }


def class_head(n_classes: int, label_vocabulary: Any, **options: Any) -> Head:
    """The head of ``n_classes`` classes."""
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2: {n_classes}")
    if n_classes == 2:
        return BinaryClassHead(label_vocabulary, **options)
    return MultiClassHead(n_classes, label_vocabulary, **options)
