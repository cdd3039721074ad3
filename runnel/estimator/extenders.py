"""Estimators like another, with more metrics or more predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel.estimator.estimator import Estimator
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.export_output import PredictOutput
from runnel.estimator.input_function import argument_names
from runnel.estimator.mode_keys import ModeKeys
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.sparse.dense import sparse_tensor_to_dense

_OFFERED = frozenset({"features", "labels", "predictions", "config"})


def _like(estimator: Estimator, changed: Callable[[EstimatorSpec, Any, Any], Any]) -> Estimator:
    """An estimator whose model is that of ``estimator``, with another specification."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec: EstimatorSpec = changed(
            estimator.model_fn(features, labels, mode, config), features, labels
        )
        return spec

    return Estimator(
        model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start,
    )


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Mapping[str, Any]]) -> Estimator:
    """An estimator that also evaluates what ``metric_fn`` returns: metrics by name.

    ``metric_fn`` takes some of ``features``, ``labels``, ``predictions`` and ``config``. A metric
    that the estimator has is replaced.

    Example:
        >>> def more(labels, predictions):
        ...     return {"auc": tf.metrics.auc(labels, predictions["logistic"])}
        >>> estimator = tf.estimator.add_metrics(estimator, more)
    """
    names = argument_names(metric_fn)
    if names - _OFFERED:
        raise ValueError(f"metric_fn (={metric_fn}) has following not expected args: {names}")

    def changed(spec: EstimatorSpec, features: Any, labels: Any) -> EstimatorSpec:
        if spec.mode != ModeKeys.EVAL:
            return spec
        offered = {
            "features": features,
            "labels": labels,
            "predictions": spec.predictions,
            "config": estimator.config,
        }
        more = metric_fn(**{name: offered[name] for name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return _like(estimator, changed)


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An estimator whose predictions have the features of ``keys`` too, by default all.

    They tell which prediction belongs to which example. Sparse features become dense;
    ``sparse_default_values`` says with what.
    """
    wanted = [keys] if isinstance(keys, str) else keys
    if wanted is not None:
        if not wanted:
            raise ValueError("keys should not be empty")
        for key in wanted:
            if not isinstance(key, str):
                raise ValueError(f"keys: All items must be strings, but {key!r} is not.")

    def changed(spec: EstimatorSpec, features: Any, labels: Any) -> EstimatorSpec:
        if spec.mode != ModeKeys.PREDICT:
            return spec
        if not isinstance(features, Mapping):
            raise ValueError(f"Features should be a dict. It is given as {features}.")
        if not isinstance(spec.predictions, Mapping):
            raise ValueError("Predictions should be a dict to be able to forward features.")
        more = {}
        for key in features if wanted is None else wanted:
            if key not in features:
                raise ValueError(f"keys should be exist in features. Key {key!r} is not.")
            if key in spec.predictions:
                raise ValueError(f"Cannot forward feature key ({key}): it is a prediction too.")
            more[key] = _dense(features[key], (sparse_default_values or {}).get(key))
        outputs = {
            name: (
                PredictOutput({**output.outputs, **more})
                if isinstance(output, PredictOutput)
                else output
            )
            for name, output in (spec.export_outputs or {}).items()
        }
        return spec._replace(predictions={**spec.predictions, **more}, export_outputs=outputs)

    return _like(estimator, changed)


def _dense(feature: Any, default: Any) -> Any:
    return (
        sparse_tensor_to_dense(feature, default_value=default)
        if isinstance(feature, SparseTensor)
        else feature
    )
