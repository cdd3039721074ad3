"""``tf.contrib.distributions.bijectors``: functions with inverses, for changes of variables."""

from runnel.distributions.bijectors.batch_normalization import BatchNormalization
from runnel.distributions.bijectors.bijector import Bijector, ConditionalBijector
from runnel.distributions.bijectors.composition import Chain, Inline, Invert
from runnel.distributions.bijectors.elementwise import (
    AbsoluteValue,
    AffineScalar,
    Exp,
    Gumbel,
    Identity,
    Kumaraswamy,
    PowerTransform,
    Sigmoid,
    SinhArcsinh,
    Softplus,
    Softsign,
    Square,
)
from runnel.distributions.bijectors.flows import (
    MaskedAutoregressiveFlow,
    RealNVP,
    masked_autoregressive_default_template,
    masked_dense,
    real_nvp_default_template,
)
from runnel.distributions.bijectors.matrices import (
    CholeskyOuterProduct,
    FillTriangular,
    MatrixInverseTriL,
    ScaleTriL,
    TransformDiagonal,
)
from runnel.distributions.bijectors.vectors import (
    Affine,
    Ordered,
    Permute,
    Reshape,
    SoftmaxCentered,
)

__all__ = [
    "AbsoluteValue",
    "Affine",
    "AffineScalar",
    "BatchNormalization",
    "Bijector",
    "Chain",
    "CholeskyOuterProduct",
    "ConditionalBijector",
    "Exp",
    "FillTriangular",
    "Gumbel",
    "Identity",
    "Inline",
    "Invert",
    "Kumaraswamy",
    "MaskedAutoregressiveFlow",
    "MatrixInverseTriL",
    "Ordered",
    "Permute",
    "PowerTransform",
    "RealNVP",
    "Reshape",
    "ScaleTriL",
    "Sigmoid",
    "SinhArcsinh",
    "SoftmaxCentered",
    "Softplus",
    "Softsign",
    "Square",
    "TransformDiagonal",
    "masked_autoregressive_default_template",
    "masked_dense",
    "real_nvp_default_template",
]


def __dir__() -> list[str]:
    return __all__
