"""``tf.contrib.distributions.bijectors``: functions with inverses."""

from runnel.distributions import bijectors as _bijectors
from runnel.distributions.bijectors import *  # noqa: F403

__all__ = _bijectors.__all__


def __dir__() -> list[str]:
    return __all__
