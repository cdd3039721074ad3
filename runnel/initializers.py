"""``tf.initializers``: initializers, and the operations that initialise variables."""

from runnel.ops.lookup.tables import tables_initializer
from runnel.variables.initialization import global_variables_initializer as global_variables
from runnel.variables.initialization import local_variables_initializer as local_variables
from runnel.variables.initialization import variables_initializer as variables
from runnel.variables.initializers import Constant as constant
from runnel.variables.initializers import GlorotNormal as glorot_normal
from runnel.variables.initializers import GlorotUniform as glorot_uniform
from runnel.variables.initializers import Identity as identity
from runnel.variables.initializers import (
    Initializer,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from runnel.variables.initializers import Ones as ones
from runnel.variables.initializers import Orthogonal as orthogonal
from runnel.variables.initializers import RandomNormal as random_normal
from runnel.variables.initializers import RandomUniform as random_uniform
from runnel.variables.initializers import TruncatedNormal as truncated_normal
from runnel.variables.initializers import UniformUnitScaling as uniform_unit_scaling
from runnel.variables.initializers import VarianceScaling as variance_scaling
from runnel.variables.initializers import Zeros as zeros

__all__ = [
    "Initializer",
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]


def __dir__() -> list[str]:
    return __all__
