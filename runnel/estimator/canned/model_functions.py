"""The models of canned estimators, over ``tf.feature_column``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from runnel.estimator.canned.heads import Head
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.mode_keys import ModeKeys
from runnel.feature_column.models import input_layer, linear_model
from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import float32
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.graph.operation import Tensor
from runnel.layers.fully_connected import dense
from runnel.layers.regularizing import batch_normalization, dropout
from runnel.ops.casting import cast
from runnel.ops.comparison import equal
from runnel.ops.control import group, no_op
from runnel.ops.reduce_functions import reduce_mean
from runnel.summary import histogram, scalar
from runnel.train.adagrad import AdagradOptimizer
from runnel.train.adam import AdamOptimizer
from runnel.train.ftrl import FtrlOptimizer
from runnel.train.global_step import get_global_step
from runnel.train.gradient_descent import GradientDescentOptimizer
from runnel.train.optimizer import Optimizer
from runnel.train.rmsprop import RMSPropOptimizer
from runnel.variables.initializers import GlorotUniform
from runnel.variables.variable_scope import VariableScope, variable_scope

# The rates of optimizers that are given by name: of a model alone, of the parts of a combined one.
DNN_LEARNING_RATE, LINEAR_LEARNING_RATE = 0.05, 0.2
COMBINED_DNN_LEARNING_RATE, COMBINED_LINEAR_LEARNING_RATE = 0.001, 0.005

_NAMED: dict[str, Callable[[float], Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}


def as_optimizer(given: Any, learning_rate: float) -> Optimizer:
    """The optimizer that a name, a function or an optimizer stands for."""
    if isinstance(given, str):
        if given not in _NAMED:
            raise ValueError(f"Unsupported optimizer name: {given}. Names are: {sorted(_NAMED)}")
        return _NAMED[given](learning_rate)
    made = given() if callable(given) else given
    if not isinstance(made, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {made!r}")
    return made


def linear_learning_rate(columns: Sequence[Any], most: float) -> float:
    """The rate that TensorFlow gives a linear model of that many columns."""
    return min(most, 1.0 / math.sqrt(len(columns)))


def _variables_of(scope: VariableScope) -> list[Any]:
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope.name + "/")


def _linear_logits(
    features: Any, columns: Any, units: int, partitioner: Any, combiner: str
) -> tuple[Tensor, VariableScope]:
    with variable_scope("linear", values=list(features.values()), partitioner=partitioner) as scope:
        logits = linear_model(features, columns, units, sparse_combiner=combiner)
        return logits, scope


def _dnn_logits(
    features: Any,
    columns: Any,
    hidden_units: Sequence[int],
    units: int,
    activation_fn: Any,
    rate: float | None,
    training: bool,
    batch_norm: bool,
    partitioner: Any,
) -> tuple[Tensor, VariableScope]:
    with variable_scope("dnn", values=list(features.values()), partitioner=partitioner) as scope:
        with variable_scope("input_from_feature_columns"):
            net = input_layer(features, columns)
        for number, size in enumerate(hidden_units):
            with variable_scope(f"hiddenlayer_{number}") as opened:
                net = dense(
                    net, size, activation_fn, kernel_initializer=GlorotUniform(), name=opened
                )
                if rate is not None and training:
                    net = dropout(net, rate, training=True)
                if batch_norm:
                    net = batch_normalization(
                        net,
                        momentum=0.999,
                        training=training,
                        name=f"batchnorm_{number}",
                    )
            _summarize(net, opened.name)
        with variable_scope("logits") as opened:
            logits = dense(net, units, kernel_initializer=GlorotUniform(), name=opened)
        _summarize(logits, opened.name)
        return logits, scope


def _summarize(value: Tensor, tag: str) -> None:
    scalar(f"{tag}/fraction_of_zero_values", reduce_mean(cast(equal(value, 0.0), float32)))
    histogram(f"{tag}/activation", value)


def build(
    features: Any,
    labels: Any,
    mode: str,
    head: Head,
    linear: dict[str, Any] | None = None,
    dnn: dict[str, Any] | None = None,
) -> EstimatorSpec:
    """A linear model, a deep one, or the sum of both, each with its own optimizer.

    ``linear`` has its ``columns``, ``optimizer``, ``learning_rate``, ``partitioner`` and
    ``combiner``; ``dnn`` its ``columns``, ``optimizer``, ``learning_rate``, ``hidden_units``,
    ``activation_fn``, ``dropout``, ``batch_norm`` and ``partitioner``.
    """
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {features!r}")
    total: Tensor | None = None
    trained: list[tuple[Optimizer, VariableScope]] = []
    training = mode == ModeKeys.TRAIN
    if dnn is not None:
        logits, scope = _dnn_logits(
            *(features, dnn["columns"], dnn["hidden_units"], head.logits_dimension),
            *(dnn["activation_fn"], dnn["dropout"], training, dnn["batch_norm"]),
            dnn.get("partitioner"),
        )
        total = logits
        if training:
            trained.append((as_optimizer(dnn["optimizer"], dnn["learning_rate"]), scope))
    if linear is not None:
        logits, scope = _linear_logits(
            *(features, linear["columns"], head.logits_dimension, linear.get("partitioner")),
            linear["combiner"],
        )
        total = logits if total is None else total + logits
        if training:
            trained.append((as_optimizer(linear["optimizer"], linear["learning_rate"]), scope))
    assert total is not None, "a model of neither part"

    def train(loss: Tensor) -> Any:
        updates = list(get_default_graph().get_collection(GraphKeys.UPDATE_OPS))
        made = [
            optimizer.minimize(loss, var_list=_variables_of(scope)) for optimizer, scope in trained
        ]
        step = get_global_step()
        with control_dependencies([*made, *updates]):
            return group(step.assign_add(1)) if step is not None else no_op()

    return head.create_estimator_spec(features, mode, total, labels, train)
