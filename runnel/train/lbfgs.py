"""L-BFGS over a session: a quasi-Newton method that drives the graph from outside.

Liu and Nocedal 1989: the two-loop recursion over the last ``history`` pairs of steps and gradient
changes, with a line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5
and 3.6). Where steps change the loss by no more than its rounding, the slopes alone decide (Hager
and Zhang 2005, the approximate Wolfe conditions).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.autodiff.gradients import gradients
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.default_session import get_default_session
from runnel.ops.constants import placeholder
from runnel.ops.control import group
from runnel.ops.fill import zeros_like
from runnel.train.optimizer import flatten_variables
from runnel.variables.initialization import trainable_variables


@dataclass(frozen=True, slots=True)
class LBFGSResult:
    """How a minimisation ended."""

    loss: float
    iterations: int
    evaluations: int
    gradient_norm: float
    converged: bool
    message: str


class LBFGSOptimizer:
    """Minimises a loss over variables with L-BFGS, whole batches at a time.

    Example:
        >>> optimizer = tf.train.LBFGSOptimizer(loss)
        >>> result = optimizer.minimize(sess, feed_dict={x: data})
        >>> result.converged
        True
    """

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        max_iterations: int = 100,
        history: int = 10,
        gradient_tolerance: float = 1e-5,
        loss_tolerance: float = 1e-9,
        max_line_search: int = 25,
    ) -> None:
        if history < 1 or max_iterations < 0:
            raise ValueError("history must be at least 1 and max_iterations at least 0")
        self._loss = convert_to_tensor(loss)
        if self._loss.dims not in ((), None):
            raise ValueError(f"The loss {self._loss.name} must be a scalar, not {self._loss.shape}")
        self._variables = flatten_variables(
            trainable_variables() if var_list is None else list(var_list)
        )
        if not self._variables:
            raise ValueError("No variables to optimize: create a trainable tf.Variable first.")
        self._max_iterations = max_iterations
        self._history = history
        self._gradient_tolerance = gradient_tolerance
        self._loss_tolerance = loss_tolerance
        self._max_line_search = max_line_search
        found = gradients(self._loss, self._variables)
        if all(g is None for g in found):
            raise ValueError(f"{self._loss.name} does not depend on any of the variables.")
        self._gradients = [
            zeros_like(v) if g is None else convert_to_tensor(g)
            for g, v in zip(found, self._variables, strict=True)
        ]
        self._new_values = [placeholder(v.dtype.base_dtype, v.get_shape()) for v in self._variables]
        self._assign = group(
            *[v.assign(p) for v, p in zip(self._variables, self._new_values, strict=True)]
        )

    def minimize(
        self,
        session: Any = None,
        feed_dict: dict[Any, Any] | None = None,
        step_callback: Callable[[int, float], None] | None = None,
    ) -> LBFGSResult:
        """Moves the variables of ``session`` to a minimum.

        They hold the best point found, also if evaluating the loss raises an error.
        ``step_callback(iteration, loss)`` is called after each step, when they hold its result.
        """
        session = session or get_default_session()
        if session is None:
            raise ValueError(
                "minimize needs a session: pass one, or call it in `with tf.Session():`"
            )
        problem = _Problem(self, session, feed_dict or {})
        try:
            return self._iterate(problem, step_callback)
        finally:
            problem.move_to(problem.best)

    def _iterate(self, problem: _Problem, callback: Any) -> LBFGSResult:
        point = problem.best
        loss, gradient = problem.evaluate(point)
        pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=self._history)
        iteration, message, converged = 0, "the iteration limit was reached", False
        while True:
            if not np.isfinite(loss):
                message = f"the loss is {loss}"
                break
            if np.abs(gradient).max(initial=0.0) <= self._gradient_tolerance:
                message, converged = "the gradient is below its tolerance", True
                break
            if iteration == self._max_iterations:
                break
            direction = -_two_loop(gradient, pairs)
            if direction @ gradient >= 0:  # the history misleads: begin again
                pairs.clear()
                direction = -gradient
            first = 1.0 if pairs else min(1.0, 1.0 / np.abs(gradient).sum())
            found = _line_search(
                problem, point, loss, gradient, direction, first, self._max_line_search
            )
            if found is None:
                if pairs:
                    pairs.clear()
                    continue
                message = "the line search found no lower point"
                break
            size, new_loss, new_gradient = found
            step = size * direction
            change = new_gradient - gradient
            curvature = float(step @ change)
            if curvature > 1e-10 * float(step @ step):
                pairs.append((step, change, 1.0 / curvature))
            decrease = loss - new_loss
            point, loss, gradient = point + step, new_loss, new_gradient
            problem.best = point
            iteration += 1
            if callback is not None:
                problem.move_to(point)
                callback(iteration, loss)
            if self._loss_tolerance and decrease <= self._loss_tolerance * max(abs(loss), 1.0):
                message, converged = "the loss no longer decreases", True
                break
        norm = float(np.abs(gradient).max(initial=0.0))
        return LBFGSResult(loss, iteration, problem.evaluations, norm, converged, message)


class _Problem:
    """The loss as a function of one flat float64 vector."""

    def __init__(self, optimizer: LBFGSOptimizer, session: Any, feed_dict: dict[Any, Any]) -> None:
        self._optimizer = optimizer
        self._session = session
        self._feed = feed_dict
        self.evaluations = 0
        self.precision = float(np.finfo(optimizer._loss.dtype.base_dtype.np_dtype).eps)
        """The relative rounding of a loss."""
        values = [np.asarray(v) for v in session.run(optimizer._variables)]
        self._shapes = [v.shape for v in values]
        self.best = np.concatenate([v.reshape(-1).astype(np.float64) for v in values])

    def move_to(self, point: np.ndarray) -> None:
        feeds, position = {}, 0
        for tensor, shape in zip(self._optimizer._new_values, self._shapes, strict=True):
            size = int(np.prod(shape, dtype=np.int64))
            part = point[position : position + size].reshape(shape)
            feeds[tensor] = part.astype(tensor.dtype.np_dtype)
            position += size
        self._session.run(self._optimizer._assign, feeds)

    def evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        self.move_to(point)
        fetches = [self._optimizer._loss, *self._optimizer._gradients]
        loss, *grads = self._session.run(fetches, self._feed)
        flat = [np.asarray(g).reshape(-1).astype(np.float64) for g in grads]
        return float(loss), np.concatenate(flat)


def _two_loop(
    gradient: np.ndarray, pairs: deque[tuple[np.ndarray, np.ndarray, float]]
) -> np.ndarray:
    """The inverse Hessian's approximation times the gradient."""
    result = gradient.copy()
    weights = []
    for step, change, inverse in reversed(pairs):
        weight = inverse * float(step @ result)
        result -= weight * change
        weights.append(weight)
    if pairs:
        step, change, inverse = pairs[-1]
        result *= 1.0 / (inverse * float(change @ change))
    for (step, change, inverse), weight in zip(pairs, reversed(weights), strict=True):
        result += step * (weight - inverse * float(change @ result))
    return result


_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_ROUNDING = 10
"""By how many units in its last place a loss may be off."""


def _line_search(
    problem: _Problem,
    point: np.ndarray,
    loss: float,
    gradient: np.ndarray,
    direction: np.ndarray,
    first: float,
    limit: int,
) -> tuple[float, float, np.ndarray] | None:
    """A step size that satisfies the strong Wolfe conditions (or the best decrease found)."""
    slope = float(direction @ gradient)
    level = loss + _ROUNDING * problem.precision * abs(loss)
    # Two ends of an interval that holds such a size: the better end, and the other once known.
    low, high = (0.0, loss, slope), None
    size = first
    best: tuple[float, float, np.ndarray] | None = None
    for _ in range(limit):
        new_loss, new_gradient = problem.evaluate(point + size * direction)
        new_slope = float(direction @ new_gradient)
        finite = bool(np.isfinite(new_loss) and np.isfinite(new_slope))
        if finite and new_loss < (loss if best is None else best[1]):
            best = (size, new_loss, new_gradient)
        if finite and loss - (level - loss) <= new_loss <= level:
            if _CURVATURE * slope <= new_slope <= (2 * _SUFFICIENT_DECREASE - 1) * slope:
                return size, new_loss, new_gradient
        decrease = loss + _SUFFICIENT_DECREASE * size * slope
        if not finite or new_loss > decrease or new_loss >= low[1]:
            high = (size, new_loss, new_slope)
        elif abs(new_slope) <= -_CURVATURE * slope:
            return size, new_loss, new_gradient
        else:
            towards_high = 1.0 if high is None else high[0] - low[0]
            if new_slope * towards_high >= 0:  # it rises that way: the minimum is behind
                high = low
            low = (size, new_loss, new_slope)
        if high is None:
            size = size * 2.0
            continue
        if abs(high[0] - low[0]) <= 1e-14 * max(1.0, low[0]):
            break
        size = _between(low, high)
    return best


def _between(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """The minimum of the parabola through both ends, kept away from them."""
    a, fa, da = low
    b, fb, _ = high
    width = b - a
    middle = a + 0.5 * width
    denominator = fb - fa - da * width
    if np.isfinite(fb) and denominator != 0:
        candidate = a - 0.5 * da * width * width / denominator
        lower, upper = sorted((a + 0.1 * width, b - 0.1 * width))
        if lower <= candidate <= upper:
            return candidate
    return middle
