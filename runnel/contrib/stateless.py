"""``tf.contrib.stateless``: random numbers that a seed determines, now in ``tf.random``."""

from runnel.ops.sampling.stateless_random import (
    stateless_multinomial,
    stateless_truncated_normal,
)
from runnel.ops.sampling.stateless_random import stateless_normal as stateless_random_normal
from runnel.ops.sampling.stateless_random import stateless_uniform as stateless_random_uniform

__all__ = [
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]


def __dir__() -> list[str]:
    return __all__
