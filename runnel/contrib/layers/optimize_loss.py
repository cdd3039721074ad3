"""``tf.contrib.layers.optimize_loss``: an optimizer, clipping, noise, summaries, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.ops.arithmetic import multiply
from runnel.ops.array_shape import shape
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_global_norm, global_norm
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.sampling.random import truncated_normal
from runnel.summary import histogram, scalar
from runnel.train.adagrad import AdagradOptimizer
from runnel.train.adam import AdamOptimizer
from runnel.train.ftrl import FtrlOptimizer
from runnel.train.global_step import assert_global_step, get_global_step
from runnel.train.gradient_descent import GradientDescentOptimizer
from runnel.train.momentum import MomentumOptimizer
from runnel.train.optimizer import Optimizer
from runnel.train.rmsprop import RMSPropOptimizer
from runnel.variables.get_variable import get_variable
from runnel.variables.initialization import trainable_variables
from runnel.variables.initializers import Constant
from runnel.variables.variable_scope import variable_scope

OPTIMIZER_CLS_NAMES: dict[str, Any] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": lambda learning_rate: MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = [
    "learning_rate",
    "loss",
    "gradients",
    "gradient_norm",
    "global_gradient_norm",
]


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Any = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """An operation that trains, and gives the loss.

    ``optimizer`` is a name ("Adam", "SGD", ...), a class, a function of the learning rate, or an
    optimizer. The update operations of the graph run first. ``clip_gradients`` is a number, to
    which the norm of all gradients is clipped, or a function of gradients and variables.

    Example:
        >>> train = tf.contrib.layers.optimize_loss(
        ...     loss, tf.train.get_or_create_global_step(), 0.01, "Adam", clip_gradients=5.0)
    """
    loss = convert_to_tensor(loss)
    if loss.shape.rank not in (0, None):
        raise ValueError(f"The loss must be a scalar, but it has shape {loss.shape}")
    if global_step is None:
        global_step = get_global_step()
    else:
        assert_global_step(global_step)
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = get_default_graph().get_collection(GraphKeys.UPDATE_OPS)
        if update_ops:
            with control_dependencies(list(update_ops)):
                loss = identity(loss)
        rate = _learning_rate(learning_rate)
        if rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, global_step)
        wanted = ["loss", "learning_rate", "global_gradient_norm"]
        wanted = wanted if summaries is None else list(summaries)
        for given in wanted:
            if given not in OPTIMIZER_SUMMARIES:
                raise ValueError(f"Summaries should be one of {OPTIMIZER_SUMMARIES}, not {given}")
        if rate is not None and "learning_rate" in wanted:
            scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate)
        variables = trainable_variables() if variables is None else variables
        gradients = made.compute_gradients(
            loss, variables, colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gradient_noise_scale is not None:
            gradients = [_noisy(pair, gradient_noise_scale) for pair in gradients]
        if gradient_multipliers is not None:
            if not gradient_multipliers:
                raise ValueError(f"gradient_multipliers is empty: {gradient_multipliers}")
            gradients = [_multiplied(pair, gradient_multipliers) for pair in gradients]
        if "global_gradient_norm" in wanted or "gradient_norm" in wanted:
            scalar("global_norm/gradient_norm", global_norm([g for g, _ in gradients]))
        clipped = False
        if isinstance(clip_gradients, float | int):
            gradients, clipped = _clipped(gradients, clip_gradients), True
        elif callable(clip_gradients):
            gradients, clipped = clip_gradients(gradients), True
        elif clip_gradients is not None:
            raise ValueError(
                f"clip_gradients must be a number or a function, not {type(clip_gradients)}"
            )
        if "loss" in wanted:
            scalar("loss", loss)
        _summarize(gradients, wanted)
        if clipped and ("global_gradient_norm" in wanted or "gradient_norm" in wanted):
            scalar("global_norm/clipped_gradient_norm", global_norm([g for g, _ in gradients]))
        train = made.apply_gradients(
            gradients,
            global_step=global_step if increment_global_step else None,
            name="train",
        )
        with control_dependencies([train]):
            return identity(loss, name="train_op")


def _learning_rate(given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, float):
        if given < 0.0:
            raise ValueError(f"Invalid learning_rate {given}.")
        return get_variable("learning_rate", [], trainable=False, initializer=Constant(given))
    if getattr(getattr(given, "shape", None), "rank", None) == 0:
        return given
    raise ValueError(
        f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}"
    )


def _optimizer(given: Any, rate: Any) -> Optimizer:
    if isinstance(given, str):
        if rate is None:
            raise ValueError("Learning rate is None, but should be specified if optimizer is named")
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided "
                f"{given}."
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)  # type: ignore[no-any-return]
    if isinstance(given, type) and issubclass(given, Optimizer):
        if rate is None:
            raise ValueError("Learning rate is None, but should be specified for a class")
        return given(learning_rate=rate)  # type: ignore[call-arg]
    made = given if isinstance(given, Optimizer) or not callable(given) else None
    if made is None:
        made = given(rate) if rate is not None else given()
    if not isinstance(made, Optimizer):
        raise ValueError(
            f"Unrecognized optimizer: a name, a class, a function or an Optimizer, not {given!r}"
        )
    return made


def _noisy(pair: tuple[Any, Any], scale: float) -> tuple[Any, Any]:
    grad, var = pair
    if grad is None:
        return pair
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    dense = grad.dense_shape if isinstance(grad, IndexedSlices) else shape(values)
    return convert_to_tensor(grad) + truncated_normal(dense) * scale, var


def _multiplied(pair: tuple[Any, Any], multipliers: Mapping[Any, Any]) -> tuple[Any, Any]:
    grad, var = pair
    if grad is None or not (var in multipliers or var.op.name in multipliers):
        return pair
    factor = multipliers[var] if var in multipliers else multipliers[var.op.name]
    if isinstance(grad, IndexedSlices):
        factor = cast(constant(factor), grad.values.dtype)
        scaled: Any = IndexedSlices(multiply(grad.values, factor), grad.indices, grad.dense_shape)
        return scaled, var
    return multiply(grad, cast(constant(factor), grad.dtype)), var


def _clipped(gradients: list[tuple[Any, Any]], norm: float) -> list[tuple[Any, Any]]:
    found, _ = clip_by_global_norm([g for g, _ in gradients], norm)
    return list(zip(found, [v for _, v in gradients], strict=True))


def _summarize(gradients: list[tuple[Any, Any]], wanted: list[str]) -> None:
    for grad, var in gradients:
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        if values is None:
            continue
        name = var.name.replace(":", "_")
        if "gradients" in wanted:
            histogram(f"gradients/{name}", values)
        if "gradient_norm" in wanted:
            scalar(f"gradient_norm/{name}", global_norm([values]))
