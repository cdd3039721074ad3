"""Drawing from distributions by trial: gamma and Poisson, as TensorFlow's CPU kernels do.

Every element of the output has a stretch of the stream to itself, and makes trials along it until
one is accepted. The trials of all elements are made together: under NumPy of those that are left,
under XLA of all of them at each turn of a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.ops.sampling.distributions import normal_columns, unit_of_pair
from runnel.ops.sampling.philox import RESERVED_PER_OUTPUT, Array, words_at

State = tuple[Array, ...]
Trial = Callable[..., tuple[State, Array, Array]]

_FLOAT64 = np.dtype(np.float64)
_KNUTH_BELOW = 10.0
_STIRLING_FROM = 10
_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(_STIRLING_FROM)])


def gamma(xp: Any, stream: Array, shape: tuple[int, ...], alpha: Array) -> Array:
    """Float64 draws from Gamma(alpha, 1), of shape ``shape`` before that of ``alpha``.

    The method is Marsaglia and Tsang's ("A simple method for generating gamma variables", 2000).
    For alpha < 1 a draw for alpha + 1 is scaled down.
    """

    def trial(
        at: Array, alpha: Array, normal: Array, has_normal: Array, unit: Array, has_unit: Array
    ) -> tuple[State, Array, Array]:
        words = words_at(xp, stream, at)
        exponential = -xp.log1p(-unit_of_pair(*words[2:]))  # all there is to it for alpha = 1
        later, sooner = normal_columns(xp, words, _FLOAT64)
        x = xp.where(has_normal, normal, sooner)
        normal, has_normal, at = later, ~has_normal, at + ~has_normal
        boosted = alpha < 1
        d = alpha + xp.where(boosted, 2 / 3, -1 / 3)
        v = 1 + 1 / 3 / xp.sqrt(d) * x
        possible = v > 0
        v = v * v * v
        u, unit, has_unit, at = _next_unit(xp, stream, at, unit, has_unit, possible)
        squeeze = u < 1 - 0.0331 * (x * x) * (x * x)
        accepted = squeeze | (xp.log(u) < 0.5 * x * x + d * (1 - v + xp.log(v)))
        accepted &= possible
        boost, unit, has_unit, at = _next_unit(xp, stream, at, unit, has_unit, accepted & boosted)
        value = d * v * xp.where(boosted, boost ** (1 / alpha), 1.0)
        value = xp.where(alpha == 1, exponential, value)
        impossible = ~(alpha >= 0)  # no trial at it would ever succeed
        value = xp.where(impossible, np.nan, value)
        accepted |= (alpha == 1) | impossible
        return (at, alpha, normal, has_normal, unit, has_unit), accepted, value

    count = math.prod(shape) * alpha.size
    nothing, none = xp.zeros(count, np.float64), xp.zeros(count, bool)
    return _sample(xp, shape, alpha, trial, (nothing, none, nothing, none))


def _next_unit(
    xp: Any, stream: Array, at: Array, unit: Array, has_unit: Array, wanted: Array
) -> tuple[Array, Array, Array, Array]:
    """The next uniform where ``wanted``; then the one left over, whether it is, and where."""
    words = words_at(xp, stream, at)
    later, sooner = unit_of_pair(*words[:2]), unit_of_pair(*words[2:])
    drawn = wanted & ~has_unit
    value = xp.where(has_unit, unit, sooner)
    return value, xp.where(drawn, later, unit), has_unit ^ wanted, at + drawn


def poisson(xp: Any, stream: Array, shape: tuple[int, ...], rate: Array, highest: float) -> Array:
    """Float64 draws from Poisson(rate), up to ``highest``, of shape ``shape`` before ``rate``'s.

    Small rates count how many uniforms can be multiplied before the product falls below
    exp(-rate) (Knuth). Others are drawn by Hörmann's transformed rejection ("The transformed
    rejection method for generating Poisson random variables", 1993).
    """

    def trial(at: Array, rate: Array, product: Array, passed: Array) -> tuple[State, Array, Array]:
        words = words_at(xp, stream, at)
        second, first = unit_of_pair(*words[:2]), unit_of_pair(*words[2:])
        possible = xp.isfinite(rate)  # no trial at others would ever succeed
        multiplied = rate < _KNUTH_BELOW
        limit = xp.exp(-rate)
        ends = product * first <= limit
        product = product * first * second
        counted = passed + ~ends
        counted_enough = ends | (product <= limit)

        large = xp.where(multiplied | ~possible, _KNUTH_BELOW, rate)
        b = 0.931 + 2.53 * xp.sqrt(large)
        a = -0.059 + 0.02483 * b
        u, v = first - 0.5, second
        edge = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / edge + b) * u + large + 0.43)
        inside = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        outside = (k < 0) | ((edge < 0.013) & (v > edge))
        height = xp.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
        below = height <= -large + k * xp.log(large) - _log_factorial(xp, k)

        value = xp.where(multiplied, counted, k)
        accepted = xp.where(multiplied, counted_enough, inside | (~outside & below))
        value = xp.where(possible, xp.minimum(value, highest), rate)
        return (at + np.uint64(1), rate, product, passed + 2), accepted | ~possible, value

    count = math.prod(shape) * rate.size
    return _sample(xp, shape, rate, trial, (xp.ones(count), xp.zeros(count)))


def _log_factorial(xp: Any, k: Array) -> Array:
    """log(k!) of whole numbers; Stirling's series for those that are not in the table."""
    n = xp.maximum(k, _STIRLING_FROM)
    square = 1 / (n * n)
    rest = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / n
    stirling = (n + 0.5) * xp.log(n) - n + 0.5 * math.log(2 * math.pi) + rest
    place = xp.clip(k, 0, _STIRLING_FROM - 1).astype(np.int32)
    return xp.where(k < _STIRLING_FROM, xp.asarray(_LOG_FACTORIALS)[place], stirling)


def _sample(xp: Any, shape: tuple[int, ...], parameter: Array, trial: Trial, extra: State) -> Array:
    """Repeats ``trial`` for each element until it is accepted.

    ``trial`` takes the counters at which the elements stand, their parameters and what they
    carry along (``extra`` at first); it returns the same after the trial, whether it was
    accepted, and the values. The draws for one parameter are neighbours in the stream.
    """
    repeats, parameters = math.prod(shape), parameter.size
    count = repeats * parameters
    at = xp.arange(count, dtype=np.uint64) * np.uint64(RESERVED_PER_OUTPUT)
    wide = xp.repeat(xp.asarray(parameter).astype(np.float64).reshape(-1), repeats)
    state: State = (at, wide, *extra)
    sample = _sample_numpy if xp is np else _sample_traced
    flat = sample(trial, state, count)
    return flat.reshape(parameters, repeats).T.reshape(*shape, *parameter.shape)


def _sample_numpy(trial: Trial, state: State, count: int) -> Array:
    result = np.empty(count)
    pending = np.arange(count)
    with np.errstate(all="ignore"):
        while pending.size:
            state, accepted, value = trial(*state)
            result[pending[accepted]] = value[accepted]
            pending = pending[~accepted]
            state = tuple(part[~accepted] for part in state)
    return result


def _sample_traced(trial: Trial, state: State, count: int) -> Array:
    import jax.numpy as jnp
    from jax import lax

    def turn(carried: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, pending, result = carried
        state, accepted, value = trial(*state)
        return state, pending & ~accepted, jnp.where(pending, value, result)

    start = state, jnp.ones(count, bool), jnp.zeros(count)
    return lax.while_loop(lambda carried: jnp.any(carried[1]), turn, start)[2]
