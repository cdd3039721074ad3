"""``MetricSpec``: a metric, and which predictions and labels it is of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

_PREDICTIONS = ("predictions", "prediction", "pred", "preds", "y_pred", "outputs", "inputs")
_LABELS = ("labels", "label", "targets", "target", "y", "y_true", "label_or_labels")


class MetricSpec:
    """A metric of the predictions ``prediction_key`` and the labels ``label_key``.

    Without keys there must be one of each. ``weight_key`` is the feature that weights examples.
    ``metric_fn`` takes predictions, labels and weights, by name, or in this order.

    Example:
        >>> tf.contrib.learn.MetricSpec(
        ...     tf.contrib.metrics.streaming_accuracy, prediction_key="classes")
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self._metric_fn = metric_fn
        self._prediction_key = prediction_key
        self._label_key = label_key
        self._weight_key = weight_key

    @property
    def metric_fn(self) -> Callable[..., Any]:
        """The function."""
        return self._metric_fn

    @property
    def prediction_key(self) -> str | None:
        """Which predictions."""
        return self._prediction_key

    @property
    def label_key(self) -> str | None:
        """Which labels."""
        return self._label_key

    @property
    def weight_key(self) -> str | None:
        """The feature that weights examples."""
        return self._weight_key

    def __str__(self) -> str:
        name = getattr(self._metric_fn, "__name__", repr(self._metric_fn))
        return (
            f"MetricSpec(metric_fn={name}, prediction_key={self._prediction_key}, "
            f"label_key={self._label_key}, weight_key={self._weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The metric, of the features ``inputs``, ``labels`` and ``predictions``."""
        found = self._chosen(predictions, self._prediction_key, "prediction")
        wanted = None if labels is None else self._chosen(labels, self._label_key, "label")
        weights = None
        if self._weight_key is not None:
            if not isinstance(inputs, Mapping) or self._weight_key not in inputs:
                raise ValueError(f"MetricSpec's weight_key {self._weight_key!r} is no feature")
            weights = inputs[self._weight_key]
        return _call(self._metric_fn, found, wanted, weights)

    def _chosen(self, values: Any, key: str | None, what: str) -> Any:
        if not isinstance(values, Mapping):
            if key is not None:
                raise ValueError(
                    f"MetricSpec with {what}_key specified requires {what}s dict, got {values}"
                )
            return values
        if key is not None:
            if key not in values:
                raise KeyError(f"{what} {key!r} is not there: {sorted(values)}")
            return values[key]
        if len(values) != 1:
            raise ValueError(
                f"MetricSpec without specified {what}_key requires a {what}s tensor or single "
                f"element dict, got {sorted(values)}"
            )
        return next(iter(values.values()))


def _call(function: Callable[..., Any], predictions: Any, labels: Any, weights: Any) -> Any:
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:
        names = []
    prediction = next((name for name in _PREDICTIONS if name in names), None)
    label = next((name for name in _LABELS if name in names), None)
    weight = {} if weights is None else {"weights": weights}
    if prediction is not None and (label is not None or labels is None):
        labelled = {} if label is None else {label: labels}
        return function(**{prediction: predictions}, **labelled, **weight)
    if labels is None:
        return function(predictions, **weight)
    return function(predictions, labels, **weight)


def metric_ops(metrics: Mapping[Any, Any], features: Any, labels: Any, predictions: Any) -> Any:
    """The metrics that a caller asks for, by name.

    The key of a function of predictions and labels may be a pair: the name, and which predictions.
    """
    made: dict[str, Any] = {}
    for name, metric in metrics.items():
        if isinstance(metric, MetricSpec):
            made[name] = metric.create_metric_ops(features, labels, predictions)
            continue
        if isinstance(name, tuple):
            if len(name) != 2 or not isinstance(predictions, Mapping):
                raise ValueError(
                    f"The metric {name} must be named by two: its name, and which of a dictionary "
                    "of predictions it is of"
                )
            made[name[0]] = metric(predictions[name[1]], labels)
            continue
        if isinstance(predictions, Mapping):
            raise ValueError(
                f"The metric {name!r} does not say which predictions it is of: use a MetricSpec "
                f"with a prediction_key; there are {sorted(predictions)}"
            )
        made[name] = metric(predictions, labels)
    return made
