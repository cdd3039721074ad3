"""Learning rates that change with the global step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import add, minimum, multiply
from runnel.ops.arithmetic import pow as raise_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, less_equal
from runnel.ops.control import identity
from runnel.ops.division import divide
from runnel.ops.elementwise import exp, log, sqrt
from runnel.ops.rounding import ceil, floor
from runnel.ops.sampling.random import random_normal
from runnel.ops.selection import where
from runnel.ops.trigonometry import cos


def _operands(learning_rate: Any, global_step: Any, *others: Any) -> list[Tensor]:
    """The rate as a tensor, and the rest as tensors of its type."""
    if global_step is None:
        raise ValueError(
            "global_step is required: pass tf.train.get_or_create_global_step(), and the same to "
            "minimize, which counts it up."
        )
    rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
    dtype = rate.dtype.base_dtype
    return [rate, *(cast(convert_to_tensor(v), dtype) for v in (global_step, *others))]


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    With ``staircase`` the exponent is rounded down, so the rate falls every ``decay_steps`` steps.

    Example:
        >>> step = tf.train.get_or_create_global_step()
        >>> rate = tf.train.exponential_decay(0.1, step, 1000, 0.96, staircase=True)
        >>> train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    """
    with name_scope(name, "ExponentialDecay") as scope:
        rate, step, steps, base = _operands(learning_rate, global_step, decay_steps, decay_rate)
        exponent = _progress(step, steps, staircase)
        return multiply(rate, raise_to(base, exponent), name=scope)


def _progress(step: Tensor, steps: Tensor, staircase: bool) -> Tensor:
    progress = step / steps
    return floor(progress) if staircase else progress


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """``values[i]`` where ``x`` lies in the i-th of the intervals that ``boundaries`` separate.

    A boundary belongs to the interval before it. ``boundaries`` have the type of ``x``.

    Example:
        >>> rate = tf.train.piecewise_constant(step, [1000, 5000], [0.1, 0.01, 0.001])
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError(
            "The length of boundaries should be 1 less than the length of values, but they are "
            f"{len(boundaries)} and {len(values)}"
        )
    with name_scope(name, "PiecewiseConstant") as scope:
        position = convert_to_tensor(x)
        limits = [_boundary(b, position) for b in boundaries]
        choices = [convert_to_tensor(v) for v in values]
        for choice in choices[1:]:
            if choice.dtype.base_dtype is not choices[0].dtype.base_dtype:
                raise ValueError(
                    "Values must have elements all with the same dtype "
                    f"({choices[0].dtype.base_dtype.name} vs {choice.dtype.base_dtype.name})."
                )
        result = choices[-1]
        for limit, choice in zip(reversed(limits), reversed(choices[:-1]), strict=True):
            result = where(less_equal(position, limit), choice, result)
        return identity(result, name=scope)


def _boundary(value: Any, position: Tensor) -> Tensor:
    # Rounding a boundary to the type of x would move it, so only what is exact is converted.
    dtype = position.dtype.base_dtype
    boundary = convert_to_tensor(value)
    given = boundary.dtype.base_dtype
    if given is dtype:
        return boundary
    if given is dtypes.int32 and dtype is dtypes.int64:
        return cast(boundary, dtype)
    raise ValueError(f"Boundaries ({given.name}) must have the same dtype as x ({dtype.name}).")


piecewise_constant_decay = piecewise_constant


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From ``learning_rate`` to ``end_learning_rate`` along a polynomial of ``decay_steps``.

    With ``cycle`` the rate rises again after ``decay_steps``, which then doubles, and so on.
    """
    with name_scope(name, "PolynomialDecay") as scope:
        rate, step, steps, end, exponent = _operands(
            learning_rate, global_step, decay_steps, end_learning_rate, power
        )
        if cycle:
            once = cast(1.0, rate.dtype.base_dtype)
            steps = steps * where(equal(step, 0), once, ceil(step / steps))
        else:
            step = minimum(step, steps)
        return add((rate - end) * raise_to(1 - step / steps, exponent), end, name=scope)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    with name_scope(name, "NaturalExpDecay") as scope:
        rate, step, steps, speed = _operands(learning_rate, global_step, decay_steps, decay_rate)
        return multiply(rate, exp(-speed * _progress(step, steps, staircase)), name=scope)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    with name_scope(name, "InverseTimeDecay") as scope:
        rate, step, steps, speed = _operands(learning_rate, global_step, decay_steps, decay_rate)
        return divide(rate, 1 + speed * _progress(step, steps, staircase), name=scope)


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine from ``learning_rate`` to ``alpha * learning_rate``."""
    with name_scope(name, "CosineDecay") as scope:
        rate, step, steps = _operands(learning_rate, global_step, decay_steps)
        wave = _half_cosine(minimum(step, steps) / steps)
        return multiply(rate, (1 - alpha) * wave + alpha, name=scope)


def _half_cosine(fraction: Tensor) -> Tensor:
    """From 1 where ``fraction`` is 0 to 0 where it is 1."""
    return 0.5 * (1.0 + cos(math.pi * fraction))


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cosine decay that restarts, with periods growing by ``t_mul`` and peaks by ``m_mul``.

    Loshchilov and Hutter 2017, "SGDR".
    """
    with name_scope(name, "SGDRDecay") as scope:
        rate, step, first, growth, peak, floor_rate = _operands(
            learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha
        )
        restarts, fraction = _period(step / first, t_mul, growth)
        wave = raise_to(peak, restarts) * _half_cosine(fraction)
        return multiply(rate, (1 - floor_rate) * wave + floor_rate, name=scope)


def _period(completed: Tensor, t_mul: Any, growth: Tensor) -> tuple[Tensor, Tensor]:
    """How many periods are over, and how much of the current one."""
    if isinstance(t_mul, int | float) and t_mul != 1:
        return _growing_period(completed, growth)
    restarts = floor(completed)
    if isinstance(t_mul, int | float):
        return restarts, completed - restarts
    constant = equal(growth, 1)
    growing, fraction = _growing_period(completed, growth)
    return (
        where(constant, restarts, growing),
        where(constant, completed - restarts, fraction),
    )


def _growing_period(completed: Tensor, growth: Tensor) -> tuple[Tensor, Tensor]:
    restarts = floor(log(1 - completed * (1 - growth)) / log(growth))
    scale = raise_to(growth, restarts)
    return restarts, (completed - (1 - scale) / (1 - growth)) / scale


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """A linear decay times a cosine of ``num_periods`` periods."""
    with name_scope(name, "LinearCosineDecay") as scope:
        rate, *rest = _operands(learning_rate, global_step, decay_steps, num_periods, alpha, beta)
        return multiply(rate, _linear_cosine(*rest), name=scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """``linear_cosine_decay`` with Gaussian noise on its line, whose variance decays."""
    with name_scope(name, "NoisyLinearCosineDecay") as scope:
        rate, step, steps, periods, base, offset = _operands(
            learning_rate, global_step, decay_steps, num_periods, alpha, beta
        )
        dtype = rate.dtype.base_dtype
        variance, speed = cast(initial_variance, dtype), cast(variance_decay, dtype)
        deviation = sqrt(variance / raise_to(1 + minimum(step, steps), speed))
        noise = random_normal(step.shape, dtype=dtype) * deviation
        factor = _linear_cosine(step, steps, periods, base, offset, noise)
        return multiply(rate, factor, name=scope)


def _linear_cosine(
    step: Tensor, steps: Tensor, periods: Tensor, alpha: Tensor, beta: Tensor, noise: Any = None
) -> Tensor:
    step = minimum(step, steps)
    line = (steps - step) / steps
    if noise is not None:
        line = line + noise
    return (alpha + line) * _half_cosine(2 * periods * (step / steps)) + beta
