"""``tf.contrib.integrate``: solving ordinary differential equations."""

from runnel.contrib.integrate.fixed_grid import odeint_fixed
from runnel.contrib.integrate.runge_kutta import odeint

__all__ = ["odeint", "odeint_fixed"]


def __dir__() -> list[str]:
    return __all__
