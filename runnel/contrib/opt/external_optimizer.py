"""Minimizing with an algorithm outside the graph, such as SciPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from runnel import logging
from runnel.autodiff.gradients import gradients
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.default_session import get_default_session
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.constants import placeholder
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat
from runnel.train.slots import is_resource
from runnel.variables.initialization import trainable_variables

Evaluation = Callable[[np.ndarray], list[Any]]
"""From all variables in one vector to the values of some tensors there."""


class ExternalOptimizerInterface:
    """The base of optimizers that drive a session; a subclass has the algorithm in ``_minimize``.

    ``var_list`` (default: the trainable variables) is optimized for the scalar ``loss``, where each
    of ``equalities`` is zero and each of ``inequalities`` is not negative (scalars too).
    ``var_to_bounds`` maps variables to pairs (low, high) that broadcast to their shape; None or an
    infinity is no bound. Other arguments are the algorithm's.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._equalities = list(equalities or [])
        self._inequalities = list(inequalities or [])
        self._vars = trainable_variables() if var_list is None else list(var_list)
        if not self._vars:
            raise ValueError("No variables to optimize: create a trainable tf.Variable first.")
        self.optimizer_kwargs = optimizer_kwargs
        self._shapes = [tuple(variable.get_shape().as_list()) for variable in self._vars]
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self._shapes)])
        self._packing_slices = [
            slice(start, end) for start, end in zip(ends[:-1], ends[1:], strict=True)
        ]
        self._packed_bounds = None
        if var_to_bounds is not None:
            self._packed_bounds = self._bounds(var_to_bounds)
        self._update_placeholders = [placeholder(v.dtype.base_dtype) for v in self._vars]
        self._var_updates = [
            variable.assign(reshape(value, shape))
            for variable, value, shape in zip(
                self._vars, self._update_placeholders, self._shapes, strict=True
            )
        ]
        self._packed_var = _pack(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._packed_equality_grads = [self._gradient(each) for each in self._equalities]
        self._packed_inequality_grads = [self._gradient(each) for each in self._inequalities]

    def _bounds(self, of: Mapping[Any, tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = []
        for variable, shape in zip(self._vars, self._shapes, strict=True):
            low, high = of.get(variable, (-np.inf, np.inf))
            pair = np.broadcast_to(low, shape).flat, np.broadcast_to(high, shape).flat
            found.extend(zip(*pair, strict=True))
        return found

    def _gradient(self, tensor: Any) -> Tensor:
        """The gradient of a scalar, as one vector; zero for what it does not depend on."""
        found = gradients(tensor, self._vars)
        pairs = zip(found, self._vars, strict=True)
        return _pack([zeros_like(v) if grad is None else grad for grad, v in pairs])

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[np.ndarray], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss now, in ``session`` (default: the default session).

        Reference variables change once, at the end; ``run_kwargs`` are for that ``session.run``.
        ``step_callback`` is given all variables in one vector after each step of the algorithm,
        ``loss_callback`` the values of ``fetches`` whenever the loss is computed.
        """
        session = session or get_default_session()
        if session is None:
            raise ValueError("minimize runs steps: give it a session, or enter one with `with`")
        feed, extra = dict(feed_dict or {}), list(fetches or [])

        def evaluation(*tensors: Any, callback: Any = None) -> Evaluation:
            def evaluate(packed: np.ndarray) -> list[Any]:
                values = self._values_at(packed, session)
                found = session.run([*tensors, *extra], feed_dict={**values, **feed})
                if callback is not None:
                    callback(*found[len(tensors) :])
                return found[: len(tensors)]

            return evaluate

        found = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=evaluation(self._loss, self._packed_loss_grad, callback=loss_callback),
            equality_funcs=[evaluation(t) for t in self._equalities],
            equality_grad_funcs=[evaluation(t) for t in self._packed_equality_grads],
            inequality_funcs=[evaluation(t) for t in self._inequalities],
            inequality_grad_funcs=[evaluation(t) for t in self._packed_inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda packed: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        session.run(self._var_updates, feed_dict=self._updates_to(found), **run_kwargs)

    def _updates_to(self, packed: np.ndarray) -> dict[Any, np.ndarray]:
        parts = zip(self._update_placeholders, self._packing_slices, strict=True)
        return {value: packed[part] for value, part in parts}

    def _values_at(self, packed: np.ndarray, session: Any) -> dict[Any, np.ndarray]:
        """What to feed to compute with these values of the variables.

        A reference variable has one tensor with its value, which is fed. A resource variable is
        read in many places, so it is set.
        """
        sets = [u for v, u in zip(self._vars, self._var_updates, strict=True) if is_resource(v)]
        if sets:
            session.run(sets, feed_dict=self._updates_to(packed))
        parts = zip(self._vars, self._packing_slices, self._shapes, strict=True)
        return {v: packed[part].reshape(shape) for v, part, shape in parts if not is_resource(v)}

    def _minimize(
        self,
        initial_val: np.ndarray,
        loss_grad_func: Evaluation,
        equality_funcs: list[Evaluation],
        equality_grad_funcs: list[Evaluation],
        inequality_funcs: list[Evaluation],
        inequality_grad_funcs: list[Evaluation],
        packed_bounds: list[tuple[Any, Any]] | None,
        step_callback: Callable[[np.ndarray], Any],
        optimizer_kwargs: dict[str, Any],
    ) -> np.ndarray:
        """The vector of all variables at which the algorithm has ended.

        ``loss_grad_func`` gives the loss and its gradient, each other function a list of one value.
        """
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """``scipy.optimize.minimize`` on the variables of a graph, by default with L-BFGS-B.

    Further arguments (``method``, ``options``, ``tol``) are SciPy's. L-BFGS-B takes bounds but no
    equalities or inequalities; ``method='SLSQP'`` takes all of them.

    Example:
        >>> optimizer = tf.contrib.opt.ScipyOptimizerInterface(
        ...     loss, method='L-BFGS-B', options={'maxiter': 100})
        >>> optimizer.minimize(sess, feed_dict={x: data}, fetches=[loss], loss_callback=print)
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: np.ndarray,
        loss_grad_func: Evaluation,
        equality_funcs: list[Evaluation],
        equality_grad_funcs: list[Evaluation],
        inequality_funcs: list[Evaluation],
        inequality_grad_funcs: list[Evaluation],
        packed_bounds: list[tuple[Any, Any]] | None,
        step_callback: Callable[[np.ndarray], Any],
        optimizer_kwargs: dict[str, Any],
    ) -> np.ndarray:
        from scipy.optimize import minimize

        def doubles(function: Evaluation) -> Evaluation:
            # SciPy's compiled algorithms take no other type.
            return lambda packed: [np.asarray(x, np.float64) for x in function(packed)]

        constraints = [
            {
                "type": kind,
                "fun": doubles(value),
                "jac": doubles(gradient),
            }
            for kind, values, grads in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for value, gradient in zip(values, grads, strict=True)
        ]
        given = {"method": self._DEFAULT_METHOD, **optimizer_kwargs}
        own = {
            "jac": True,
            "callback": step_callback,
            "constraints": constraints,
            "bounds": packed_bounds,
        }
        if "bounds" in given:
            raise ValueError("Bounds must be set using the var_to_bounds argument")
        for name in own:
            if name in given:
                raise ValueError(
                    f"Optimizer keyword arg '{name}' is set automatically and cannot be injected "
                    "manually"
                )
        result = minimize(doubles(loss_grad_func), initial_val.astype(np.float64), **own, **given)
        lines = [
            "Optimization terminated with:",
            f"  Message: {result.message}",
            f"  Objective function value: {result.fun:f}",
        ]
        for key, what in (("nit", "iterations"), ("nfev", "functions evaluations")):
            if key in result:  # not every method counts them
                lines.append(f"  Number of {what}: {result[key]}")
        logging.info("%s", "\n".join(lines))
        found: np.ndarray = result.x
        return found


def _pack(values: Sequence[Any]) -> Tensor:
    """All values one after the other in one vector."""
    return concat([reshape(convert_to_tensor(value), [-1]) for value in values], 0)
