"""``Bijector``: a function with an inverse, and how both change volumes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype, float32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape
from runnel.ops.constants import constant
from runnel.ops.fill import zeros
from runnel.ops.reduce_functions import reduce_sum


class Bijector:
    """A function with an inverse.

    A subclass has ``_forward(x)``, ``_inverse(y)``, and ``_forward_log_det_jacobian(x)`` or
    ``_inverse_log_det_jacobian(y)``: the logarithm by which volumes grow, for an event of
    ``forward_min_event_ndims`` dimensions. What was computed forwards is known backwards: the
    inverse of a result is the tensor that it came from.

    Example:
        >>> class Double(tf.contrib.distributions.bijectors.Bijector):
        ...     def __init__(self):
        ...         super().__init__(forward_min_event_ndims=0, name="double")
        ...     def _forward(self, x):
        ...         return 2.0 * x
        ...     def _inverse(self, y):
        ...         return y / 2.0
        ...     def _forward_log_det_jacobian(self, x):
        ...         return tf.fill(tf.shape(x), np.log(2.0))
    """

    def __init__(
        self,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError(
                "Must specify at least one of `forward_min_event_ndims` and "
                "`inverse_min_event_ndims`."
            )
        forward, inverse = forward_min_event_ndims, inverse_min_event_ndims
        self._forward_rank: int = inverse if forward is None else forward  # type: ignore[assignment]
        self._inverse_rank: int = forward if inverse is None else inverse  # type: ignore[assignment]
        self._graph_parents = list(graph_parents or [])
        self._is_constant_jacobian = is_constant_jacobian
        self._validate_args = validate_args
        self._dtype = None if dtype is None else as_dtype(dtype)
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__.lstrip("_")).lower()
        self._name = name or snake
        self._came_from: dict[Tensor, Tensor] = {}
        self._went_to: dict[Tensor, Tensor] = {}
        self._volumes: dict[tuple[Tensor, Tensor], Tensor] = {}

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type that it works on; None: any."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that it was made of."""
        return self._graph_parents

    @property
    def validate_args(self) -> bool:
        """Whether it was asked to check what it is given."""
        return self._validate_args

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether volumes grow the same everywhere."""
        return self._is_constant_jacobian

    @property
    def forward_min_event_ndims(self) -> int:
        """The dimensions of the least that :meth:`forward` works on."""
        return self._forward_rank

    @property
    def inverse_min_event_ndims(self) -> int:
        """The dimensions of the least that :meth:`inverse` works on."""
        return self._inverse_rank

    @property
    def _is_injective(self) -> bool:
        return True

    # Shapes -----------------------------------------------------------------------------------

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """The shape of an event after :meth:`forward`."""
        return TensorShape(self._forward_event_shape(TensorShape(input_shape)))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """The shape of an event after :meth:`inverse`."""
        return TensorShape(self._inverse_event_shape(TensorShape(output_shape)))

    def forward_event_shape_tensor(
        self, input_shape: Any, name: str = "forward_event_shape_tensor"
    ) -> Tensor:
        """The shape of an event after :meth:`forward`, as a tensor."""
        with self._scope(name, input_shape):
            return self._forward_event_shape_tensor(convert_to_tensor(input_shape))

    def inverse_event_shape_tensor(
        self, output_shape: Any, name: str = "inverse_event_shape_tensor"
    ) -> Tensor:
        """The shape of an event after :meth:`inverse`, as a tensor."""
        with self._scope(name, output_shape):
            return self._inverse_event_shape_tensor(convert_to_tensor(output_shape))

    # The function ------------------------------------------------------------------------------

    def forward(self, x: Any, name: str = "forward", **condition: Any) -> Tensor:
        """The function."""
        with self._scope(name, x):
            given = self._as_input(x)
            if condition or not self._is_injective:
                return self._forward(given, **condition)
            known = self._went_to.get(given)
            return self._met(given, self._forward(given))[1] if known is None else known

    def inverse(self, y: Any, name: str = "inverse", **condition: Any) -> Any:
        """Its inverse; a tuple of the parts of it where it has several."""
        with self._scope(name, y):
            given = self._as_input(y)
            if condition or not self._is_injective:
                return self._inverse(given, **condition)
            known = self._came_from.get(given)
            return self._met(self._inverse(given), given)[0] if known is None else known

    def _met(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        self._went_to[x], self._came_from[y] = y, x
        return x, y

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian", **condition: Any
    ) -> Tensor:
        """The logarithm by which volumes around ``x`` grow, for events of so many dimensions."""
        self._check_rank(event_ndims, self._forward_rank)
        with self._scope(name, x):
            given = self._as_input(x)
            if _has(self, "_forward_log_det_jacobian"):
                volume = self._forward_log_det_jacobian(given, **condition)
            else:
                target = self.forward(given, **condition)
                volume = -self._inverse_log_det_jacobian(target, **condition)
            return self._over_event(given, volume, self._forward_rank, event_ndims)

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian", **condition: Any
    ) -> Any:
        """The logarithm by which :meth:`inverse` grows volumes around ``y``."""
        self._check_rank(event_ndims, self._inverse_rank)
        with self._scope(name, y):
            given = self._as_input(y)
            if not self._is_injective:
                parts = self._inverse_log_det_jacobian(given, **condition)
                return tuple(
                    self._over_event(given, part, self._inverse_rank, event_ndims) for part in parts
                )
            if _has(self, "_inverse_log_det_jacobian"):
                volume = self._inverse_log_det_jacobian(given, **condition)
            else:
                source = self.inverse(given, **condition)
                volume = -self._forward_log_det_jacobian(source, **condition)
            return self._over_event(given, volume, self._inverse_rank, event_ndims)

    def _check_rank(self, event_ndims: int, least: int) -> None:
        if event_ndims < least:
            raise ValueError(
                f"event_ndims ({event_ndims}) must be larger than min_event_ndims ({least}) of the "
                f"bijector {self._name!r}"
            )

    def _over_event(self, value: Tensor, volume: Any, least: int, event_ndims: int) -> Tensor:
        """The sum over the dimensions of the event that the function treats alike."""
        extra = event_ndims - least
        volume = convert_to_tensor(volume, value.dtype.base_dtype)
        if extra == 0:
            return volume
        whole = shape(value)
        if self._is_constant_jacobian:  # it may have no dimensions of the event
            volume = volume + zeros(whole[: shape(whole)[0] - least], volume.dtype)
        return reduce_sum(volume, list(range(-extra, 0)))

    def _scope(self, name: str, *values: Any) -> Any:
        return name_scope(f"{self._name}/{name}")

    def _as_input(self, value: Any) -> Tensor:
        kind = self._dtype or (None if hasattr(value, "dtype") else float32)
        return convert_to_tensor(value, kind)

    # What subclasses say -------------------------------------------------------------------------

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{self._name}: forward is not implemented")

    def _inverse(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{self._name}: inverse is not implemented")

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        raise NotImplementedError(f"{self._name}: forward_log_det_jacobian is not implemented")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{self._name}: inverse_log_det_jacobian is not implemented")

    def _forward_event_shape(self, input_shape: TensorShape) -> Any:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> Any:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape


def _has(bijector: Bijector, method: str) -> bool:
    own: Callable[..., Any] = getattr(type(bijector), method)
    return own is not getattr(Bijector, method) or method in vars(bijector)


class ConditionalBijector(Bijector):
    """A bijector whose methods take more arguments, by name."""


def no_change() -> Tensor:
    """The volume's logarithm where it stays the same."""
    return constant(0.0)
