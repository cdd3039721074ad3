"""Regularizers: functions of a variable whose value is added to the objective."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph, name_scope
from runnel.ops.arithmetic import add_n, multiply
from runnel.ops.constants import constant
from runnel.ops.elementwise import abs as abs_
from runnel.ops.l2 import l2_loss
from runnel.ops.reduce_functions import reduce_sum

Regularizer = Callable[..., Any]


def _checked(scale: Any) -> Any:
    """``scale`` as a number that is not negative."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real) and float(scale) < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")
    return scale


def _scaled(
    scale: Any, measure: Callable[[Any], Any], default_name: str, scope: str | None
) -> Regularizer:
    # A scale of 0 adds nothing to the graph.
    if isinstance(scale, numbers.Real) and scale == 0.0:
        return lambda _, name=None: None

    def regularizer(weights: Any, name: str | None = None) -> Any:
        with name_scope(scope or name, default_name, [weights]) as opened:
            factor = constant(scale, weights.dtype.base_dtype, name="scale")
            return multiply(factor, measure(weights), name=opened)

    return regularizer


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """``scale`` times the sum of the absolute values."""
    return _scaled(_checked(scale), lambda w: reduce_sum(abs_(w)), "l1_regularizer", scope)


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """``scale`` times half the sum of the squares.

    Example:
        >>> tf.get_variable("w", [3], regularizer=tf.contrib.layers.l2_regularizer(1e-4))
    """
    return _scaled(_checked(scale), l2_loss, "l2_regularizer", scope)


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Regularizer:
    """Both."""
    both: list[Regularizer | None] = [l1_regularizer(scale_l1), l2_regularizer(scale_l2)]
    return sum_regularizer(both, scope or "l1_l2_regularizer")


def sum_regularizer(regularizer_list: list[Regularizer | None], scope: str | None = None) -> Any:
    """The sum of several; None where there is none."""
    present = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not present:
        return None

    def total(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as opened:
            values = [regularizer(weights) for regularizer in present]
            kept = [value for value in values if value is not None]
            return add_n(kept, name=opened) if kept else None

    return total


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Any:
    """The sum of what a regularizer makes of variables; it is a regularization loss, too.

    Without ``weights_list``, of those of the collection ``tf.GraphKeys.WEIGHTS``.
    """
    if weights_list is None:
        weights_list = get_default_graph().get_collection(GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights_list) as opened:
        made = [regularizer(weights) for weights in weights_list]
        penalties = [constant(0.0) if penalty is None else penalty for penalty in made]
        for penalty in penalties:
            if penalty.shape.rank != 0:
                raise ValueError(
                    f"regularizer must return a scalar Tensor instead of a Tensor with rank "
                    f"{penalty.shape.rank}."
                )
        total = add_n(penalties, name=opened)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total
