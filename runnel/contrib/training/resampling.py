"""Examples drawn again in proportion to rates or weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.control import stop_gradient
from runnel.ops.gather import gather
from runnel.ops.ranges import range as range_of
from runnel.ops.reduce_functions import reduce_mean
from runnel.ops.sampling.random_poisson import random_poisson
from runnel.ops.searching import repeat
from runnel.train.moving_averages import assign_moving_average
from runnel.variables.get_variable import get_local_variable
from runnel.variables.variable_scope import variable_scope


def resample_at_rate(
    inputs: Sequence[Any],
    rates: Any,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[Tensor]:
    """Rows of ``inputs``, each as often as a Poisson variable of its rate says.

    Example:
        >>> images, labels = tf.contrib.training.resample_at_rate([images, labels], rates)
    """
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rate = convert_to_tensor(rates, name="rates")
        counts = cast(random_poisson(rate, [], rate.dtype.base_dtype, seed=seed), dtypes.int32)
        rows = repeat(range_of(size(counts)), counts)
        if not back_prop:
            rows = stop_gradient(rows)
        return [gather(convert_to_tensor(one), rows) for one in inputs]


def weighted_resample(
    inputs: Sequence[Any],
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Rows of ``inputs`` drawn again in proportion to their ``weights``, and the rows' rates.

    A row of mean weight is drawn ``overall_rate`` times on average; the mean is a moving one, in a
    local variable.
    """
    with name_scope(scope, "weighted_resample", [*inputs]) as opened:
        weight = convert_to_tensor(weights)
        with variable_scope(scope, "estimate_mean"):
            mean = get_local_variable(
                "estimated_mean", initializer=np.zeros((), weight.dtype.np_dtype)
            )
        moved = assign_moving_average(mean, reduce_mean(weight), mean_decay)
        rates = weight * overall_rate / moved
        of_rates, *rows = resample_at_rate([rates, *inputs], rates, opened, seed)
        return rows, of_rates
