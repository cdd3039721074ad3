"""``ModelFnOps``: what a model function of ``tf.contrib.learn`` has built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.contrib.learn.keys import ModeKeys
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.export_output import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from runnel.graph.conversion import convert_to_tensor
from runnel.ops.control import group, no_op
from runnel.ops.strings.conversions import as_string
from runnel.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from runnel.train.session_run_hook import SessionRunHook


class ModelFnOps:
    """The operations of a model, as ``mode`` needs them.

    ``eval_metric_ops`` maps names to pairs of a value and an update, or to values.

    Example:
        >>> return tf.contrib.learn.ModelFnOps(mode, {"scores": scores}, loss, train_op)
    """

    def __init__(
        self,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        output_alternatives: Mapping[Any, Any] | None = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
    ) -> None:
        if mode == ModeKeys.TRAIN and train_op is None:
            raise ValueError("Missing train_op.")
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL) and loss is None:
            raise ValueError("Missing loss.")
        if mode in (ModeKeys.INFER, ModeKeys.EVAL) and predictions is None:
            raise ValueError("Missing predictions.")
        self.mode = mode
        self.predictions = _tensors(predictions)
        self.loss = loss
        self.train_op = train_op
        self.eval_metric_ops = dict(eval_metric_ops or {})
        self.output_alternatives = output_alternatives
        self.training_chief_hooks = list(training_chief_hooks or ())
        self.training_hooks = list(training_hooks or ())
        self.scaffold = scaffold

    def _replace(self, **changes: Any) -> ModelFnOps:
        """A copy with some of the values others."""
        return ModelFnOps(**{**vars(self), **changes})

    def estimator_spec(
        self, default_serving_output_alternative_key: str | None = None
    ) -> EstimatorSpec:
        """What ``tf.estimator`` makes of it."""
        train_op = self.train_op
        if isinstance(train_op, list | tuple):
            train_op = group(*train_op)
        metrics = {
            name: pair if isinstance(pair, tuple) else _pair(pair)
            for name, pair in self.eval_metric_ops.items()
            if name not in ("loss", "global_step")  # the estimator has them
        }
        exports = None
        if self.mode == ModeKeys.INFER:
            exports = _exports(self.predictions, default_serving_output_alternative_key)
        return EstimatorSpec(
            self.mode,
            predictions=self.predictions,
            loss=self.loss if self.mode != ModeKeys.INFER else None,
            train_op=train_op if self.mode == ModeKeys.TRAIN else None,
            eval_metric_ops=metrics,
            export_outputs=exports,
            training_chief_hooks=_hooks(self.training_chief_hooks),
            training_hooks=_hooks(self.training_hooks),
            scaffold=self.scaffold,
        )


def _hooks(given: list[Any]) -> list[SessionRunHook]:
    from runnel.contrib.learn.monitors import replace_monitors_with_hooks

    return replace_monitors_with_hooks(given, None)


def _pair(value: Any) -> tuple[Any, Any]:
    found = tuple(value) if isinstance(value, list) else (value, no_op())
    if len(found) != 2:
        raise ValueError(f"A metric must be a value, or a pair with its update, not {value!r}")
    return found[0], found[1]


def _tensors(predictions: Any) -> Any:
    if predictions is None:
        return None
    if isinstance(predictions, Mapping):
        return {name: convert_to_tensor(value) for name, value in predictions.items()}
    return convert_to_tensor(predictions)


def _exports(predictions: Any, default_key: str | None) -> dict[str, Any]:
    """The signatures of an exported model, by what it predicts."""
    made: dict[str, Any] = {"predict": PredictOutput(predictions)}
    default = "predict"
    if isinstance(predictions, Mapping):
        if "probabilities" in predictions and "classes" in predictions:
            classes = predictions["classes"]
            if classes.dtype.base_dtype.is_integer:
                classes = as_string(classes)
            made["classification"] = ClassificationOutput(
                predictions["probabilities"], classes if classes.shape.rank == 2 else None
            )
            default = "classification"
        elif "scores" in predictions:
            made["regression"] = RegressionOutput(predictions["scores"])
            default = "regression"
    made[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = made[default_key or default]
    return made
