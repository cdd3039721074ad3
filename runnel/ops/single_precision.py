"""The error function and the gamma function's logarithm and derivative of float32 arrays.

Each takes the fewest passes over memory that give float32's digits. The coefficients are of fits
with the least relative error, computed in float64 from the definitions; tests compare with the
standard library. ``special_values.py`` has the same functions for float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from runnel.ops import special_values

# erf(x) = tanh(x * p(x**2) / q(x**2)): tanh forgives errors where erf is near 1. q is monic.
_TANH_P = tuple(
    np.float32(c)
    for c in (3472.7430419454045, 861.1442942466375, 131.2506939275325, 6.703964984912991)
)
_TANH_Q = tuple(
    np.float32(c) for c in (3077.638378721518, 482.8586714928446, 72.90903433413355)
)  # fmt: skip

# erfc(x) * exp(x**2) * (x + 3) as a polynomial in (x - 3) / (x + 3), for x from 0 to 10.2.
_TAIL = tuple(
    np.float32(c)
    for c in (
        1.0740069077657959, -0.8833944864552569, 0.5902282986424061, -0.3104660083611124,
        0.11952906654707808, -0.026839827150710316, -0.0012264228332556982, 0.0030803321937723405,
        -0.0004831878651477387, -0.00032534170336490976,
    )
)  # fmt: skip


def _by_blocks(size: int) -> Callable[[Callable[[Any, Any], None]], Callable[[Any], np.ndarray]]:
    """Applies a function of (from, to) to float32 blocks that stay in the processor's cache."""

    def decorate(function: Callable[[Any, Any], None]) -> Callable[[Any], np.ndarray]:
        @wraps(function)
        def apply(x: Any) -> np.ndarray:
            x = np.asarray(x, np.float32)
            out: np.ndarray = np.empty(x.shape, np.float32)
            source, target = x.reshape(-1), out.reshape(-1)
            for start in range(0, source.size, size):
                block = slice(start, start + size)
                function(source[block], target[block])
            return out

        return apply

    return decorate


def _polynomial(x: np.ndarray, coefficients: Any, out: np.ndarray) -> np.ndarray:
    """By Horner's rule; the first coefficient is the constant one."""
    np.multiply(x, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        out += coefficient
        out *= x
    out += coefficients[0]
    return out


@_by_blocks(16384)
def erf(x: np.ndarray, out: np.ndarray) -> None:
    """The error function."""
    square = x * x
    np.minimum(square, np.float32(36), out=square)  # beyond, tanh is 1 and -1 anyway
    part = square + _TANH_Q[-1]
    for coefficient in _TANH_Q[-2::-1]:
        part *= square
        part += coefficient
    ratio = _polynomial(square, _TANH_P, np.empty_like(out))
    ratio /= part
    np.multiply(x, ratio, out=out)
    np.tanh(out, out=out)


@_by_blocks(8192)
def erfc(x: np.ndarray, out: np.ndarray) -> None:
    """One minus the error function, accurate where that is tiny."""
    size = np.minimum(np.abs(x), np.float32(20))
    above = size + np.float32(3)
    np.subtract(size, np.float32(3), out=out)
    out /= above
    tail = _polynomial(out, _TAIL, np.empty_like(out))
    tail /= above
    # exp(-x*x) from two factors, since rounding x*x would cost digits: 12 bits have exact squares.
    coarse = (size.view(np.int32) & np.int32(-4096)).view(np.float32)
    np.add(size, coarse, out=above)
    np.subtract(coarse, size, out=size)
    size *= above
    tail *= np.exp(size, out=size)
    coarse *= coarse
    np.negative(coarse, out=coarse)
    tail *= np.exp(coarse, out=coarse)
    # The tail itself for positive numbers, 2 - tail for negative ones.
    negative = np.signbit(x)
    np.copysign(tail, x, out=out)
    np.add(out, np.float32(2) * negative, out=out)


def _gamma(of: Callable[[np.ndarray], np.ndarray], wide: Callable[[Any], np.ndarray]) -> Any:
    """``of`` for float64 blocks of positive numbers, and ``wide`` for those that are not."""

    @_by_blocks(4096)
    def function(x: np.ndarray, out: np.ndarray) -> None:
        numbers = x.astype(np.float64)
        out[...] = of(numbers)
        others = ~(x > 0)
        if others.any():
            out[others] = wide(numbers[others])

    return function


# Both go by Stirling's series 8 further on, and back by x (x+1) ... (x+7), which is
# u (u+6) (u+10) (u+12) of u = x (x+7). The series has Bernoulli's numbers.
_LOG_SERIES = tuple(
    b / (2 * k * (2 * k - 1)) for k, b in enumerate(special_values.BERNOULLI[:7], start=1)
)
_SLOPE_SERIES = (0.0, *(b / (2 * k) for k, b in enumerate(special_values.BERNOULLI[:7], start=1)))
_HALF_LOG_2_PI = 0.9189385332046727
_BOUND = 1e30
"""Beyond, going back changes no digit, and the products would overflow."""


def _lgamma(x: np.ndarray) -> np.ndarray:
    u = np.minimum(x, _BOUND)
    u *= u + 7
    product = u + 6
    product *= u
    u += 10
    product *= u
    u += 2
    product *= u
    back = np.log(product, out=product)
    shifted = x + 8
    inverse = np.divide(1, shifted, out=u)
    series = _polynomial(inverse * inverse, _LOG_SERIES, np.empty_like(u))
    series *= inverse
    logarithm = np.log(shifted)
    logarithm -= 1
    shifted -= 0.5
    shifted *= logarithm
    series += _HALF_LOG_2_PI - 0.5
    series -= back
    shifted += series
    shifted[(x == 1) | (x == 2)] = 0  # which rounding would miss
    return shifted


def _digamma(x: np.ndarray) -> np.ndarray:
    bounded = np.minimum(x, _BOUND)
    u = bounded + 7
    u *= bounded
    back = _polynomial(u, (720.0, 504.0, 84.0, 4.0), np.empty_like(u))
    back /= _polynomial(u, (0.0, 720.0, 252.0, 28.0, 1.0), np.empty_like(u))
    bounded *= 2
    bounded += 7
    back *= bounded
    shifted = x + 8
    inverse = np.divide(1, shifted, out=bounded)
    series = _polynomial(inverse * inverse, _SLOPE_SERIES, u)
    inverse *= 0.5
    series += inverse
    series += back
    return np.subtract(np.log(shifted, out=shifted), series, out=shifted)


lgamma = _gamma(_lgamma, special_values.lgamma)
digamma = _gamma(_digamma, special_values.digamma)
