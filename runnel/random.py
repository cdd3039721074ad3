"""``tf.random``: random tensors, their seeds, and tensors that are functions of a seed."""

from runnel.graph.random_seed import get_seed, set_random_seed
from runnel.ops.sampling.candidate_samplers import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from runnel.ops.sampling.random import categorical, multinomial, truncated_normal
from runnel.ops.sampling.random import random_normal as normal
from runnel.ops.sampling.random import random_shuffle as shuffle
from runnel.ops.sampling.random import random_uniform as uniform
from runnel.ops.sampling.random_gamma import random_gamma as gamma
from runnel.ops.sampling.random_poisson import random_poisson as poisson
from runnel.ops.sampling.stateless_random import (
    stateless_categorical,
    stateless_multinomial,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
)

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "fixed_unigram_candidate_sampler",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]


def __dir__() -> list[str]:
    return __all__
