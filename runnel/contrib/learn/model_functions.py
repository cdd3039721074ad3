"""The linear and deep models of ``tf.contrib.learn``'s ready-made estimators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from runnel.contrib.layers.arrangements import dropout as keep
from runnel.contrib.layers.feature_column_ops import (
    input_from_feature_columns,
    weighted_sum_from_feature_columns,
)
from runnel.contrib.layers.feature_columns import ContribColumn
from runnel.contrib.layers.fully_connected import fully_connected
from runnel.contrib.layers.optimize_loss import optimize_loss
from runnel.contrib.learn.heads import Head
from runnel.contrib.learn.keys import ModeKeys
from runnel.contrib.learn.model_fn_ops import ModelFnOps
from runnel.feature_column.models import input_layer, linear_model
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.graph.operation import Tensor
from runnel.ops.activations import relu
from runnel.ops.control import group
from runnel.ops.moments import zero_fraction
from runnel.summary import histogram, scalar
from runnel.train.global_step import get_global_step
from runnel.variables.initialization import trainable_variables
from runnel.variables.variable_scope import variable_scope

DNN_LEARNING_RATE, LINEAR_LEARNING_RATE = 0.05, 0.2


def linear_learning_rate(columns: Sequence[Any]) -> float:
    """The rate that TensorFlow gives a linear model of that many columns."""
    return min(LINEAR_LEARNING_RATE, 1.0 / math.sqrt(len(columns)))


def _as_dictionary(features: Any) -> dict[str, Any]:
    return dict(features) if isinstance(features, Mapping) else {"": features}


def _are_ours(columns: Sequence[Any]) -> bool:
    """Whether columns are those of ``tf.contrib.layers``, or of ``tf.feature_column``."""
    return all(isinstance(column, ContribColumn) for column in columns)


def _summarize(value: Tensor, tag: str) -> None:
    scalar(f"{tag}/fraction_of_zero_values", zero_fraction(value))
    histogram(f"{tag}/activation", value)


def _activation(given: Any) -> Any:
    if isinstance(given, str):
        from runnel import nn

        return getattr(nn, given)
    return relu if given is None else given


def _linear_logits(features: dict[str, Any], columns: Any, units: int) -> Tensor:
    with variable_scope("linear", values=list(features.values())) as scope:
        if _are_ours(columns):
            logits, _, _ = weighted_sum_from_feature_columns(
                features, columns, units, weight_collections=["linear"], scope=scope
            )
        else:
            logits = linear_model(features, columns, units, weight_collections=["linear"])
        _summarize(logits, scope.name)
        return logits


def _dnn_logits(features: dict[str, Any], part: dict[str, Any], units: int, mode: str) -> Tensor:
    values = list(features.values())
    columns, kept = part["columns"], ["dnn"]
    with variable_scope("dnn", values=values):
        with variable_scope("input_from_feature_columns", values=values) as scope:
            if _are_ours(columns):
                net = input_from_feature_columns(features, columns, kept, scope=scope)
            else:
                net = input_layer(features, columns, weight_collections=kept)
        for number, size in enumerate(part["hidden_units"]):
            with variable_scope(f"hiddenlayer_{number}", values=[net]) as scope:
                net = fully_connected(
                    net,
                    size,
                    _activation(part["activation_fn"]),
                    variables_collections=kept,
                    scope=scope,
                )
                if part["dropout"] is not None and mode == ModeKeys.TRAIN:
                    net = keep(net, keep_prob=1.0 - part["dropout"])
            _summarize(net, scope.name)
        with variable_scope("logits", values=[net]) as scope:
            logits = fully_connected(net, units, None, variables_collections=kept, scope=scope)
        _summarize(logits, scope.name)
        return logits


def build(
    features: Any,
    labels: Any,
    mode: str,
    head: Head,
    linear: dict[str, Any] | None,
    dnn: dict[str, Any] | None,
    clip_norm: float | None,
    counts_once: bool = True,
) -> ModelFnOps:
    """A linear model, a deep one, or the sum of both, each with its own optimizer.

    ``linear`` has its ``columns`` and ``optimizer``; ``dnn`` also its ``hidden_units``,
    ``activation_fn`` and ``dropout``. Unless it ``counts_once``, each part adds to the global step.
    """
    features = _as_dictionary(features)
    total: Any = None
    if dnn is not None:
        total = _dnn_logits(features, dnn, head.logits_dimension, mode)
    if linear is not None:
        logits = _linear_logits(features, linear["columns"], head.logits_dimension)
        total = logits if total is None else total + logits
    rates = {
        "dnn": (dnn, DNN_LEARNING_RATE, "Adagrad"),
        "linear": (linear, linear_learning_rate(linear["columns"]) if linear else 0.0, "Ftrl"),
    }

    def train(loss: Tensor) -> Any:
        step = get_global_step()
        made = [
            optimize_loss(
                loss,
                step,
                rate,
                _optimizer(part["optimizer"], default),
                clip_gradients=clip_norm,
                variables=_variables_of(name),
                name=name,
                summaries=[],
                increment_global_step=not counts_once,
            )
            for name, (part, rate, default) in rates.items()
            if part is not None
        ]
        if not counts_once:
            return group(*made)
        assert step is not None, "an estimator makes a global step"
        with control_dependencies(made):
            return group(step.assign_add(1))

    return head.create_model_fn_ops(features, mode, labels, train, total)


def _optimizer(given: Any, default: str) -> Any:
    if given is None:
        return default
    return given() if callable(given) and not isinstance(given, type) else given


def _variables_of(name: str) -> list[Any]:
    trained = set(trainable_variables())
    found = get_default_graph().get_collection(name)
    return [variable for variable in dict.fromkeys(found) if variable in trained]
