"""``tf.contrib.distributions``: those of ``tf.distributions``, and more."""

from typing import Any

from runnel import distributions as _distributions
from runnel.contrib.distributions import bijectors
from runnel.distributions import *  # noqa: F403
from runnel.distributions.continuous import MultivariateNormalDiag
from runnel.distributions.counts import (
    Binomial,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Poisson,
)
from runnel.distributions.deterministic import Deterministic, VectorDeterministic
from runnel.distributions.discrete import OneHotCategorical
from runnel.distributions.independent import Independent
from runnel.distributions.mixtures import Mixture, MixtureSameFamily
from runnel.distributions.multivariate_normal import (
    MultivariateNormalDiagPlusLowRank,
    MultivariateNormalDiagWithSoftplusScale,
    MultivariateNormalFullCovariance,
    MultivariateNormalTriL,
)
from runnel.distributions.positive import Chi2, Chi2WithAbsDf, HalfNormal, InverseGamma
from runnel.distributions.quantized import QuantizedDistribution
from runnel.distributions.relaxed import (
    ExpRelaxedOneHotCategorical,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from runnel.distributions.transformed import TransformedDistribution
from runnel.distributions.triangular import (
    fill_triangular,
    fill_triangular_inverse,
    matrix_diag_transform,
    softplus_inverse,
)
from runnel.distributions.unbounded import (
    Cauchy,
    LaplaceWithSoftplusScale,
    Logistic,
    NormalWithSoftplusScale,
    StudentT,
    StudentTWithAbsDfSoftplusScale,
)

_MORE: dict[str, Any] = {
    found.__name__: found
    for found in (
        Binomial,
        Cauchy,
        Chi2,
        Chi2WithAbsDf,
        Deterministic,
        ExpRelaxedOneHotCategorical,
        Geometric,
        HalfNormal,
        Independent,
        InverseGamma,
        LaplaceWithSoftplusScale,
        Logistic,
        Mixture,
        MixtureSameFamily,
        Multinomial,
        MultivariateNormalDiag,
        MultivariateNormalDiagPlusLowRank,
        MultivariateNormalDiagWithSoftplusScale,
        MultivariateNormalFullCovariance,
        MultivariateNormalTriL,
        NegativeBinomial,
        NormalWithSoftplusScale,
        OneHotCategorical,
        Poisson,
        QuantizedDistribution,
        RelaxedBernoulli,
        RelaxedOneHotCategorical,
        StudentT,
        StudentTWithAbsDfSoftplusScale,
        TransformedDistribution,
        VectorDeterministic,
        fill_triangular,
        fill_triangular_inverse,
        matrix_diag_transform,
        softplus_inverse,
    )
}

_MORE["bijectors"] = bijectors

__all__ = sorted({*_distributions.__all__, *_MORE})


def __dir__() -> list[str]:
    return __all__
