"""``odeint``: steps as long as a tolerance allows (Dormand and Prince, 1980)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel.contrib.integrate.fixed_grid import Derivative
from runnel.contrib.integrate.times import as_state, as_times, increasing
from runnel.control_flow.loop import while_loop
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import add_n, maximum, minimum
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import sqrt, square
from runnel.ops.reduce_functions import reduce_all, reduce_mean
from runnel.ops.rounding import is_finite
from runnel.ops.selection import where_v2

# The tableau of DOPRI5: times and weights of the stages, and weights of the error and the middle.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (
    1951 / 21600 - 35 / 384,
    0,
    22642 / 50085 - 500 / 1113,
    451 / 720 - 125 / 192,
    -12231 / 42400 + 2187 / 6784,
    649 / 6300 - 11 / 84,
    1 / 60,
)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


class _Solution(NamedTuple):
    """Where the solver is: the last step was from ``t0`` to ``t1``, the next takes ``dt``."""

    y: Any
    slope: Any
    t0: Any
    t1: Any
    dt: Any
    polynomial: list[Any]
    """Its coefficients describe the last step."""


class _History(NamedTuple):
    times: Any
    errors: Any


def odeint(
    func: Derivative,
    y0: Any,
    t: Any,
    rtol: float = 1e-6,
    atol: float = 1e-12,
    method: str | None = None,
    options: dict[str, Any] | None = None,
    full_output: bool = False,
    name: str | None = None,
) -> Any:
    """The states at the times ``t`` of ``dy/dt = func(y, t)`` that begins as ``y0`` at ``t[0]``.

    A step's error, as it is estimated, is at most ``atol + rtol * |y|``. ``method`` may be
    ``"dopri5"``; its ``options`` are ``first_step``, ``safety``, ``ifactor`` and ``dfactor`` (by
    how much a step may grow or shrink) and ``max_num_steps`` between two times. With
    ``full_output`` a dictionary says which steps were tried.

    Example:
        >>> states = tf.contrib.integrate.odeint(lambda y, t: -y, 1.0, np.linspace(0, 2, 5))
    """
    if method not in (None, "dopri5"):
        raise ValueError(f"invalid method: {method!r}")
    if options and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    with name_scope(name, "odeint"):
        y0, t = as_state(y0), as_times(t, "t")
        real = absolute(y0).dtype
        tolerances = (convert_to_tensor(rtol, dtype=real), convert_to_tensor(atol, dtype=real))
        found, history = _solve(func, y0, t, tolerances, **(options or {}))
    if not full_output:
        return found
    points = history.times.stack()
    return found, {
        "num_func_evals": 6 * size(points) + 1,
        "integrate_points": points,
        "error_ratio": history.errors.stack(),
    }


def _solve(
    func: Derivative,
    y0: Tensor,
    t: Tensor,
    tolerances: tuple[Tensor, Tensor],
    first_step: Any = None,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    max_num_steps: int = 1000,
) -> tuple[Any, _History]:
    rtol, atol = tolerances
    start = convert_to_tensor(1.0 if first_step is None else first_step, dtype=t.dtype)

    def step(at: _Solution, history: _History, taken: Any) -> Any:
        y, slope, _, now, dt, polynomial = at
        checks = [
            Assert(now + dt > now, ["underflow in dt", dt]),
            Assert(taken < max_num_steps, ["max_num_steps exceeded"]),
            Assert(reduce_all(is_finite(absolute(y))), ["non-finite values in state `y`", y]),
        ]
        with get_default_graph().control_dependencies(checks):
            new, slopes, error = _step(func, y, slope, now, dt)
        allowed = atol + rtol * maximum(absolute(y), absolute(new))
        ratio = sqrt(reduce_mean(square(absolute(error)) / square(allowed)))
        accepted = ratio <= 1
        fitted = _fit(y, new, slopes, cast(dt, y.dtype))
        root = cast(ratio, dt.dtype) ** (1 / 5)
        # An exact step has ratio zero; the bounds hold for that, too.
        factor = maximum(minimum(root / safety, 1 / dfactor), 1 / ifactor)
        next_at = _Solution(
            where_v2(accepted, new, y),
            where_v2(accepted, slopes[-1], slope),
            now,
            where_v2(accepted, now + dt, now),
            dt / factor,
            [where_v2(accepted, one, other) for one, other in zip(fitted, polynomial, strict=True)],
        )
        times, errors = history
        history = _History(times.write(times.size(), now + dt), errors.write(errors.size(), ratio))
        return next_at, history, taken + 1

    def to_next_time(found: TensorArray, history: _History, at: _Solution, i: Any) -> Any:
        at, history, _ = while_loop(lambda at, history, taken: t[i] > at.t1, step, (at, history, 0))
        y = _evaluated(at.polynomial, (t[i] - at.t0) / (at.t1 - at.t0))
        return found.write(i, y), history, at, i + 1

    with increasing(t):
        count = size(t)
        states = TensorArray(y0.dtype, count).write(0, y0)
        times, errors = (
            TensorArray(dtype, 0, dynamic_size=True) for dtype in (t.dtype, rtol.dtype)
        )
        history = _History(times, errors)
        at = _Solution(y0, func(y0, t[0]), t[0], t[0], start, [y0] * 5)
        states, history, _, _ = while_loop(
            lambda found, history, at, i: i < count, to_next_time, (states, history, at, 1)
        )
        found = states.stack()
    found.set_shape(t.shape.concatenate(y0.shape))
    return found, history


def _step(func: Derivative, y: Any, slope: Any, t: Any, dt: Any) -> tuple[Any, list[Any], Any]:
    """The state after a step, the slopes at its stages, and an estimate of its error."""
    h = cast(dt, y.dtype)
    slopes = [slope]
    new = y
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        new = y + _weighted(h, weights, slopes)
        slopes.append(func(new, t + time * dt))
    return new, slopes, _weighted(h, _ERROR, slopes)


def _weighted(h: Any, weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    return add_n([h * w * k for w, k in zip(weights, slopes, strict=True) if w != 0])


def _fit(y0: Any, y1: Any, slopes: list[Any], h: Any) -> list[Any]:
    """The polynomial of degree 4 with the values and slopes at both ends, and the middle."""
    middle = y0 + _weighted(h, _MIDDLE, slopes)
    f0, f1 = h * slopes[0], h * slopes[-1]
    return [
        -2 * f0 + 2 * f1 - 8 * y0 - 8 * y1 + 16 * middle,
        5 * f0 - 3 * f1 + 18 * y0 + 14 * y1 - 32 * middle,
        -4 * f0 + f1 - 11 * y0 - 5 * y1 + 16 * middle,
        f0,
        y0,
    ]


def _evaluated(polynomial: list[Any], place: Any) -> Any:
    x = cast(place, polynomial[0].dtype)
    total = polynomial[0]
    for coefficient in polynomial[1:]:
        total = total * x + coefficient
    return total
