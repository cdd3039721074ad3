"""Bijectors made of others, and of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.distributions.bijectors.bijector import Bijector
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape


class Invert(Bijector):
    """A bijector the other way round."""

    def __init__(
        self, bijector: Bijector, validate_args: bool = False, name: str | None = None
    ) -> None:
        super().__init__(
            bijector.graph_parents,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            name=name or f"invert_{bijector.name}",
        )
        self._bijector = bijector

    @property
    def bijector(self) -> Bijector:
        """The bijector."""
        return self._bijector

    # The other remembers what it has met, so these ask it and not themselves.

    def forward(self, x: Any, name: str = "forward", **condition: Any) -> Tensor:
        """The inverse of the bijector."""
        return self._bijector.inverse(x, **condition)

    def inverse(self, y: Any, name: str = "inverse", **condition: Any) -> Tensor:
        """The bijector."""
        return self._bijector.forward(y, **condition)

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: int, name: str = "", **condition: Any
    ) -> Any:
        """The logarithm by which the bijector's inverse grows volumes."""
        return self._bijector.inverse_log_det_jacobian(x, event_ndims, **condition)

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: int, name: str = "", **condition: Any
    ) -> Any:
        """The logarithm by which the bijector grows volumes."""
        return self._bijector.forward_log_det_jacobian(y, event_ndims, **condition)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return self._bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return self._bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._bijector.forward_event_shape_tensor(output_shape)


def _least_ranks(bijectors: Sequence[Bijector]) -> tuple[int, int]:
    """The dimensions of the least event that a chain works on, before it and after."""
    before = after = 0
    for bijector in reversed(bijectors):  # in the order of forward
        more = max(bijector.forward_min_event_ndims - after, 0)
        change = bijector.inverse_min_event_ndims - bijector.forward_min_event_ndims
        before, after = before + more, after + more + change
    return before, after


class Chain(Bijector):
    """Bijectors after each other: ``Chain([f, g]).forward(x)`` is ``f.forward(g.forward(x))``.

    Example:
        >>> tfb = tf.contrib.distributions.bijectors
        >>> squash = tfb.Chain([tfb.AffineScalar(shift=-1.0, scale=2.0), tfb.Sigmoid()])
    """

    def __init__(
        self,
        bijectors: Sequence[Bijector] | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        given = tuple(bijectors or ())
        if any(not bijector._is_injective for bijector in given):
            raise NotImplementedError("Invert is not implemented for non-injective bijectors.")
        before, after = _least_ranks(given)
        super().__init__(
            [parent for bijector in given for parent in bijector.graph_parents],
            is_constant_jacobian=all(bijector.is_constant_jacobian for bijector in given),
            validate_args=validate_args,
            dtype=next((b.dtype for b in given if b.dtype is not None), None),
            forward_min_event_ndims=before,
            inverse_min_event_ndims=after,
            name=name
            or "_of_".join(["chain", *(b.name for b in given)] if given else ["identity"]),
        )
        self._bijectors = given

    @property
    def bijectors(self) -> tuple[Bijector, ...]:
        """The bijectors, the last one first."""
        return self._bijectors

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        for bijector in reversed(self._bijectors):
            x = bijector.forward(x, **condition.get(bijector.name, {}))
        return x

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        for bijector in self._bijectors:
            y = bijector.inverse(y, **condition.get(bijector.name, {}))
        return y

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian", **condition: Any
    ) -> Any:
        """The logarithm by which all of them together grow volumes."""
        self._check_rank(event_ndims, self._forward_rank)
        with self._scope(name, x):
            x = self._as_input(x)
            total: Any = 0.0
            for bijector in reversed(self._bijectors):
                own = condition.get(bijector.name, {})
                total += bijector.forward_log_det_jacobian(x, event_ndims, **own)
                event_ndims += bijector.inverse_min_event_ndims - bijector.forward_min_event_ndims
                x = bijector.forward(x, **own)
            return total

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian", **condition: Any
    ) -> Any:
        """The logarithm by which their inverses together grow volumes."""
        self._check_rank(event_ndims, self._inverse_rank)
        with self._scope(name, y):
            y = self._as_input(y)
            total: Any = 0.0
            for bijector in self._bijectors:
                own = condition.get(bijector.name, {})
                total += bijector.inverse_log_det_jacobian(y, event_ndims, **own)
                event_ndims += bijector.forward_min_event_ndims - bijector.inverse_min_event_ndims
                y = bijector.inverse(y, **own)
            return total

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        for bijector in reversed(self._bijectors):
            input_shape = bijector.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        for bijector in self._bijectors:
            output_shape = bijector.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        for bijector in reversed(self._bijectors):
            input_shape = bijector.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        for bijector in self._bijectors:
            output_shape = bijector.inverse_event_shape_tensor(output_shape)
        return output_shape


class Inline(Bijector):
    """A bijector of functions.

    Example:
        >>> tfb.Inline(
        ...     forward_fn=tf.tanh,
        ...     inverse_fn=tf.atanh,
        ...     inverse_log_det_jacobian_fn=lambda y: -tf.log1p(-tf.square(y)),
        ...     forward_min_event_ndims=0,
        ... )
    """

    def __init__(
        self,
        forward_fn: Callable[..., Any] | None = None,
        inverse_fn: Callable[..., Any] | None = None,
        inverse_log_det_jacobian_fn: Callable[..., Any] | None = None,
        forward_log_det_jacobian_fn: Callable[..., Any] | None = None,
        forward_event_shape_fn: Callable[..., Any] | None = None,
        forward_event_shape_tensor_fn: Callable[..., Any] | None = None,
        inverse_event_shape_fn: Callable[..., Any] | None = None,
        inverse_event_shape_tensor_fn: Callable[..., Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            name=name,
        )
        functions = {
            "_forward": forward_fn,
            "_inverse": inverse_fn,
            "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }
        for method, function in functions.items():
            if function is not None:
                if not callable(function):
                    raise TypeError(f"{method[1:]}_fn is not a callable function.")
                setattr(self, method, function)
