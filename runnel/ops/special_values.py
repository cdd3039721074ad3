"""Special functions that NumPy lacks: error function, gamma function and its derivatives.

All compute in float64 on whole arrays, to about 1e-15. The Chebyshev coefficients were computed
with 50 digits from the definitions; each comment says of which function, on which interval.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebval

# erf(x) / x as a function of x**2 in [0, 1].
_ERF = (
    0.9754769393826541,
    -0.14226120510371365,
    0.010035582187599796,
    -0.0005768764699767485,
    2.741993125219606e-05,
    -1.1043175507344507e-06,
    3.8488755420345036e-08,
    -1.1808582533875466e-09,
    3.2334215826050907e-11,
    -7.991015947004549e-13,
    1.7990725113961456e-14,
    -3.718635487818693e-16,
    7.103599003714253e-18,
    -1.2612455119155226e-19,
)

# (x + c) * exp(x**2) * erfc(x) for x >= 1, as a function of (x - c) / (x + c) with c = 2.5.
_ERFC = (
    0.9428567230627729,
    -0.45400266241393294,
    0.08650170985489321,
    -0.012187349785163006,
    0.0010229192207129904,
    1.2425477268497003e-05,
    -1.5496891093239147e-05,
    1.1532352092978407e-06,
    1.976391442353095e-07,
    -3.386242089717318e-08,
    -2.897146954002397e-09,
    8.730632364178446e-10,
    5.901040472506911e-11,
    -2.34513436912823e-11,
    -1.82441449393136e-12,
    6.611841848427105e-13,
    7.450141117584597e-14,
    -1.8624741663833266e-14,
    -3.3525939127577398e-15,
    4.680312466875259e-16,
    1.5019939420846825e-16,
    -6.918427032248724e-18,
)

# lgamma(x) / ((x - 1) * (x - 2)) for x in [1, 2]: the zeros at 1 and 2 stay exact.
_LGAMMA = (
    0.49141539302938714,
    -0.07611416167043585,
    0.008432324965932778,
    -0.001079493726328608,
    0.00014900748003692963,
    -2.1512399888556784e-05,
    3.1979329860862186e-06,
    -4.851693012139927e-07,
    7.47148782116316e-08,
    -1.1638296700170518e-08,
    1.829400437118668e-09,
    -2.8969180607129607e-10,
    4.61570140620909e-11,
    -7.392810230497983e-12,
    1.1894280008333085e-12,
    -1.9212068676522805e-13,
    3.113975526387164e-14,
    -5.0628432984486114e-15,
    8.254150281631144e-16,
    -1.3490578987574844e-16,
    2.209876116782623e-17,
    -3.6274129549239766e-18,
    5.965430068821522e-19,
)

# Bernoulli numbers B2, B4, ... for the asymptotic series.
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip


_BLOCK = 4096


def _by_blocks(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], np.ndarray]:
    """``function`` applied to float64 blocks that stay in the processor's cache."""

    @wraps(function)
    def apply(x: Any) -> np.ndarray:
        x = np.asarray(x, np.float64)
        if x.size <= _BLOCK:
            return function(x)
        flat = x.reshape(-1)
        out = np.empty_like(flat)
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = function(flat[block])
        return out.reshape(x.shape)

    return apply


@_by_blocks
def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    size = np.abs(x)
    small = np.minimum(size, 1.0)
    near = small * chebval(2 * small * small - 1, _ERF)
    far = 1.0 - _erfc_tail(np.maximum(size, 1.0))
    return np.copysign(np.where(size < 1, near, far), x)


@_by_blocks
def erfc(x: np.ndarray) -> np.ndarray:
    """One minus the error function, accurate where that is tiny."""
    tail = _erfc_tail(np.maximum(np.abs(x), 1.0))
    return np.where(np.abs(x) < 1, 1.0 - erf(x), np.where(x > 0, tail, 2.0 - tail))


def _erfc_tail(x: np.ndarray) -> np.ndarray:
    c, lowest = 2.5, (1 - 2.5) / (1 + 2.5)
    bounded = np.minimum(x, 1e150)  # infinity minus infinity would be NaN
    t = (bounded - c) / (bounded + c)
    scaled = chebval((2 * t - 1 - lowest) / (1 - lowest), _ERFC) / (bounded + c)
    # exp(-x*x) from two factors, since rounding x*x would cost digits.
    coarse = np.floor(bounded * 16) / 16
    return np.exp(-coarse * coarse) * np.exp((coarse - bounded) * (coarse + bounded)) * scaled


@_by_blocks
def lgamma(x: np.ndarray) -> np.ndarray:
    """The logarithm of the absolute value of the gamma function."""
    value = _lgamma_positive(np.where(x < 0.5, 1.0 - x, x))
    sine = np.abs(np.sin(np.pi * (x - np.rint(x))))
    reflected = np.log(np.pi) - np.log(sine) - value
    result = np.where(x < 0.5, reflected, value)
    pole = (x <= 0) & (x == np.floor(x)) | np.isinf(x)
    return np.where(pole, np.inf, result)


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    """For x >= 0.5: by the recurrence to [1, 2], or Stirling's series from 8 on."""
    reduced = np.where(x >= 8, 1.5, x)
    below = reduced < 1  # then it stands for reduced + 1, which would be rounded
    factor = np.where(below, reduced, 1.0)
    for _ in range(6):
        above = reduced > 2
        reduced = np.where(above, reduced - 1, reduced)
        factor = np.where(above, factor * reduced, factor)
    zeros = np.where(below, reduced * (reduced - 1), (reduced - 1) * (reduced - 2))
    smooth = chebval(2 * reduced - np.where(below, 1, 3), _LGAMMA)
    near = zeros * smooth + np.where(below, -1, 1) * np.log(factor)
    large = np.maximum(x, 8.0)
    inverse = 1 / (large * large)
    series = np.zeros_like(large)
    for k in range(len(BERNOULLI), 0, -1):
        series = series * inverse + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    far = (large - 0.5) * np.log(large) - large + 0.5 * np.log(2 * np.pi) + series / large
    return np.where(x >= 8, far, near)


@_by_blocks
def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of the logarithm of the gamma function."""
    negative = x <= 0
    shifted = np.where(negative, 1.0 - x, x)
    correction = np.zeros_like(shifted)
    for _ in range(10):
        small = shifted < 10
        correction -= np.where(small, 1 / shifted, 0.0)
        shifted = np.where(small, shifted + 1, shifted)
    inverse = 1 / (shifted * shifted)
    series = np.zeros_like(shifted)
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] / (2 * k)) * inverse
    value = np.log(shifted) - 0.5 / shifted - series + correction
    # The reflection formula; sine and cosine of pi * x by way of the distance to an integer.
    offset = np.pi * (x - np.rint(x))
    value = np.where(negative, value - np.pi / np.tan(offset), value)
    return np.where(negative & (x == np.floor(x)), np.nan, value)


def zeta(s: Any, q: Any) -> np.ndarray:
    """Hurwitz's zeta function, the sum of (q + k) ** -s over k = 0, 1, ..., for s > 1.

    Euler and Maclaurin's formula after the first terms. For q < 0 it is defined when s is
    whole.
    """
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    undefined = (s < 1) | (q <= 0) & (s != np.floor(s)) | ~np.isfinite(q)
    infinite = (s == 1) | (q <= 0) & (q == np.floor(q))
    base = np.where(undefined | infinite, 1.0, q)
    total = np.zeros_like(base)
    while (small := base < 10).any():
        total += np.where(small, base**-s, 0.0)
        base = np.where(small, base + 1, base)
    power = base**-s
    total += base * power / np.where(s == 1, 1.0, s - 1) + 0.5 * power
    term = s * power / (2 * base)  # s (s+1) ... (s+2k-2) / ((2k)! base ** (s+2k-1)), k = 1
    for k, bernoulli in enumerate(BERNOULLI, start=1):
        total += bernoulli * term
        growth = (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2))
        term = term * growth / (base * base)
    return np.where(infinite, np.inf, np.where(undefined, np.nan, total))


def polygamma(n: Any, x: Any) -> np.ndarray:
    """The ``n``-th derivative of the digamma function."""
    n, x = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(x, np.float64))
    whole = (n >= 0) & (n == np.floor(n))
    order = np.where(whole & (n > 0), n, 1.0)
    sign = np.where(order % 2 == 1, 1.0, -1.0)
    derivative = sign * np.exp(lgamma(order + 1)) * zeta(order + 1, x)
    return np.where(whole, np.where(n == 0, digamma(x), derivative), np.nan)
