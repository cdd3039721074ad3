"""``odeint_fixed``: steps of a given length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.integrate.times import as_state, as_times, increasing
from runnel.control_flow.loop import while_loop
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.rounding import ceil

Derivative = Callable[[Any, Any], Any]
"""From the state and the time to the state's derivative."""


def odeint_fixed(
    func: Derivative,
    y0: Any,
    t: Any,
    dt: Any = None,
    method: str = "rk4",
    name: str | None = None,
) -> Tensor:
    """The states at the times ``t`` of ``dy/dt = func(y, t)`` that begins as ``y0`` at ``t[0]``.

    ``dt`` is the length of a step, or one for each interval of ``t``; each is made a little
    shorter so that steps fill their interval (default: one step). ``method`` is ``"midpoint"`` or
    ``"rk4"``, Runge's and Kutta's of second and fourth order.

    Example:
        >>> states = tf.contrib.integrate.odeint_fixed(lambda y, t: -y, 1.0, [0.0, 1.0, 2.0], 0.01)
    """
    if method not in _STEPS:
        raise ValueError(f"method not supported: {method}")
    with name_scope(name, "odeint_fixed"):
        t, y0 = as_times(t, "t"), as_state(y0)
        intervals = t[1:] - t[:-1]
        dt = intervals if dt is None else as_times(dt, "dt")
        if t.shape.ndims != 1 or dt.shape.ndims not in (0, 1):
            raise ValueError("t and dt must be 1D tensors")
        if dt.shape.ndims == 1 and t.shape[0] != dt.shape[0] + 1:
            raise ValueError("t and dt have incompatible lengths, must be N and N-1")
        counts = ceil(intervals / dt)
        dt = intervals / counts
        counts = cast(counts, int32)
        step = _STEPS[method]

        def interval(found: TensorArray, y: Any, now: Any, i: Any) -> Any:
            y, now, _ = while_loop(
                lambda y, now, j: j < counts[i - 1],
                lambda y, now, j: (
                    y + cast(step(func, y, now, dt[i - 1]), y.dtype),
                    now + dt[i - 1],
                    j + 1,
                ),
                (y, now, 0),
            )
            return found.write(i, y), y, now, i + 1

        with increasing(t):
            count = size(t)
            states = TensorArray(y0.dtype, count).write(0, y0)
            states, *_ = while_loop(
                lambda found, y, now, i: i < count, interval, (states, y0, t[0], 1)
            )
            found = states.stack()
        found.set_shape(t.shape.concatenate(y0.shape))
        return found


def _midpoint(func: Derivative, y: Any, t: Any, dt: Any) -> Any:
    h = cast(dt, y.dtype)
    return h * func(y + func(y, t) * h / 2, t + dt / 2)


def _rk4(func: Derivative, y: Any, t: Any, dt: Any) -> Any:
    h = cast(dt, y.dtype)
    first = func(y, t)
    second = func(y + h * first / 2, t + dt / 2)
    third = func(y + h * second / 2, t + dt / 2)
    fourth = func(y + h * third, t + dt)
    return (first + 2 * second + 2 * third + fourth) * (h / 6)


_STEPS = {"midpoint": _midpoint, "rk4": _rk4}
