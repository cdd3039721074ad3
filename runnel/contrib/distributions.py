"""``tf.contrib.distributions``: those of ``tf.distributions``, and more."""

from runnel import distributions as _distributions
from runnel.distributions import *  # noqa: F403
from runnel.distributions.continuous import MultivariateNormalDiag
from runnel.distributions.discrete import OneHotCategorical
from runnel.distributions.independent import Independent

_MORE = {
    "Independent": Independent,
    "MultivariateNormalDiag": MultivariateNormalDiag,
    "OneHotCategorical": OneHotCategorical,
}

__all__ = sorted({*_distributions.__all__, *_MORE})


def __dir__() -> list[str]:
    return __all__
