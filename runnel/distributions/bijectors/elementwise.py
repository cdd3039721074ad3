"""Bijectors that treat each number by itself."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.bijectors.bijector import Bijector, no_change
from runnel.distributions.scalar_family import parameter
from runnel.graph.operation import Tensor
from runnel.ops.activations import softplus
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import exp, expm1, log, log1p, sigmoid, sqrt, square
from runnel.ops.fill import zeros_like
from runnel.ops.trigonometry import asinh, cosh, sinh


class _Elementwise(Bijector):
    """A bijector of numbers."""

    def __init__(self, validate_args: bool = False, name: str | None = None, **more: Any) -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name, **more)


class Identity(_Elementwise):
    """``y = x``."""

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        super().__init__(validate_args, name, is_constant_jacobian=True)

    def _forward(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return no_change()

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return no_change()


class PowerTransform(_Elementwise):
    """``y = (1 + power * x) ** (1 / power)``, and ``exp(x)`` for the power 0."""

    def __init__(
        self, power: float = 0.0, validate_args: bool = False, name: str = "power_transform"
    ) -> None:
        if power < 0:
            raise ValueError("`power` must be a non-negative TF constant.")
        super().__init__(validate_args, name)
        self._power = power

    @property
    def power(self) -> float:
        """The power."""
        return self._power

    def _forward(self, x: Tensor) -> Tensor:
        if self._power == 0.0:
            return exp(x)
        return exp(log1p(x * self._power) / self._power)

    def _inverse(self, y: Tensor) -> Tensor:
        if self._power == 0.0:
            return log(y)
        return expm1(log(y) * self._power) / self._power

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return (self._power - 1.0) * log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._power == 0.0:
            return x
        return (1.0 / self._power - 1.0) * log1p(x * self._power)


class Exp(PowerTransform):
    """``y = exp(x)``."""

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(0.0, validate_args, name)


class AffineScalar(_Elementwise):
    """``y = scale * x + shift``."""

    def __init__(
        self,
        shift: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        name: str = "affine_scalar",
    ) -> None:
        super().__init__(validate_args, name, is_constant_jacobian=True)
        self._shift = None if shift is None else parameter(shift)
        self._scale = None if scale is None else parameter(scale)

    @property
    def shift(self) -> Tensor | None:
        """What is added."""
        return self._shift

    @property
    def scale(self) -> Tensor | None:
        """What is multiplied."""
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        y = x if self._scale is None else x * self._scale
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self._shift is None else y - self._shift
        return x if self._scale is None else x / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return no_change() if self._scale is None else log(abs_(self._scale))


class Sigmoid(_Elementwise):
    """``y = 1 / (1 + exp(-x))``."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y) - log1p(-y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log1p(-y) - log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class Softplus(_Elementwise):
    """``y = hinge_softness * log(1 + exp(x / hinge_softness))``."""

    def __init__(
        self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus"
    ) -> None:
        super().__init__(validate_args, name)
        self._softness = None if hinge_softness is None else parameter(hinge_softness)

    @property
    def hinge_softness(self) -> Tensor | None:
        """How soft the bend is."""
        return self._softness

    def _forward(self, x: Tensor) -> Tensor:
        if self._softness is None:
            return softplus(x)
        return self._softness * softplus(x / self._softness)

    def _inverse(self, y: Tensor) -> Tensor:
        given = y if self._softness is None else y / self._softness
        found = given + log(-expm1(-given))
        return found if self._softness is None else self._softness * found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log(-expm1(-(y if self._softness is None else y / self._softness)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-(x if self._softness is None else x / self._softness))


class Softsign(_Elementwise):
    """``y = x / (1 + abs(x))``."""

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return x / (1.0 + abs_(x))

    def _inverse(self, y: Tensor) -> Tensor:
        return y / (1.0 - abs_(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -2.0 * log1p(abs_(x))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -2.0 * log1p(-abs_(y))


class Square(_Elementwise):
    """``y = x ** 2`` of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return square(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return sqrt(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return math.log(2.0) + log(x)


class AbsoluteValue(_Elementwise):
    """``y = abs(x)``, whose inverse is a pair."""

    def __init__(self, validate_args: bool = False, name: str = "absolute_value") -> None:
        super().__init__(validate_args, name, is_constant_jacobian=True)

    @property
    def _is_injective(self) -> bool:
        return False

    def _forward(self, x: Tensor) -> Tensor:
        return abs_(x)

    def _inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:
        same = zeros_like(y)
        return same, same


class Gumbel(_Elementwise):
    """``y = exp(-exp(-(x - loc) / scale))``."""

    def __init__(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        validate_args: bool = False,
        name: str = "gumbel",
    ) -> None:
        super().__init__(validate_args, name)
        self._loc, self._scale = parameter(loc), parameter(scale)

    @property
    def loc(self) -> Tensor:
        """Where its middle is."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """How wide it is."""
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        return exp(-exp(-(x - self._loc) / self._scale))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._loc - self._scale * log(-log(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return log(self._scale / (-log(y) * y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        z = (x - self._loc) / self._scale
        return -z - exp(-z) - log(self._scale)


class Kumaraswamy(_Elementwise):
    """``y = (1 - (1 - x) ** (1 / concentration0)) ** (1 / concentration1)``."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        name: str = "kumaraswamy",
    ) -> None:
        super().__init__(validate_args, name)
        self._a, self._b = parameter(concentration1), parameter(concentration0)

    @property
    def concentration1(self) -> Tensor:
        """How much 1 is favoured."""
        return self._a

    @property
    def concentration0(self) -> Tensor:
        """How much 0 is favoured."""
        return self._b

    def _forward(self, x: Tensor) -> Tensor:
        return exp(log1p(-exp(log1p(-x) / self._b)) / self._a)

    def _inverse(self, y: Tensor) -> Tensor:
        return -expm1(self._b * log1p(-(y**self._a)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        powers = (self._a - 1.0) * log(y) + (self._b - 1.0) * log1p(-(y**self._a))
        return log(self._a) + log(self._b) + powers


class SinhArcsinh(_Elementwise):
    """``y = sinh((arcsinh(x) + skewness) * tailweight)``."""

    def __init__(
        self,
        skewness: Any = None,
        tailweight: Any = None,
        validate_args: bool = False,
        name: str = "SinhArcsinh",
    ) -> None:
        super().__init__(validate_args, name)
        self._skewness = parameter(0.0 if skewness is None else skewness)
        self._tailweight = parameter(1.0 if tailweight is None else tailweight)

    @property
    def skewness(self) -> Tensor:
        """How far the middle moves."""
        return self._skewness

    @property
    def tailweight(self) -> Tensor:
        """How heavy the tails become."""
        return self._tailweight

    def _forward(self, x: Tensor) -> Tensor:
        return sinh((asinh(x) + self._skewness) * self._tailweight)

    def _inverse(self, y: Tensor) -> Tensor:
        return sinh(asinh(y) / self._tailweight - self._skewness)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        inner = cosh(asinh(y) / self._tailweight - self._skewness)
        return log(inner) - log(self._tailweight) - 0.5 * log1p(square(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        outer = cosh((asinh(x) + self._skewness) * self._tailweight)
        return log(outer) + log(self._tailweight) - 0.5 * log1p(square(x))
