"""Examples of operations that draw random numbers: types and shapes are compared, not values.

(The values are compared, stream by stream, in test_random.py.)
"""

import numpy as np

from tests.conformance.exchange import call

SEEDS = {"seed": 7, "seed2": 11}
KEY = np.array([3, 4], np.int64)

EXAMPLES = {
    name: call([2, 3], dtype=1, **SEEDS)
    for name in ("RandomStandardNormal", "RandomUniform", "TruncatedNormal")
}
EXAMPLES |= {
    name: call([2, 3], KEY)
    for name in ("StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal")
}
EXAMPLES |= {
    "Multinomial": call([[0.1, 0.9]], 5, **SEEDS),
    "RandomGamma": call([2], [1.0, 2.0], **SEEDS),
    "RandomPoisson": call([2], [1.0, 2.0], **SEEDS),
    "RandomPoissonV2": call([2], [1.0, 2.0], **SEEDS),
    "RandomShuffle": call([1, 2, 3], **SEEDS),
    "RandomUniformInt": call([2, 3], 0, 10, **SEEDS),
    "ParameterizedTruncatedNormal": call([3], 0.0, 1.0, -1.0, 1.0, **SEEDS),
    "StatelessMultinomial": call([[0.1, 0.9]], 5, KEY),
    "StatelessRandomUniformInt": call([2, 3], KEY, 0, 10),
    "SampleDistortedBoundingBox": call([50, 40, 3], [[[0.1, 0.2, 0.6, 0.9]]], **SEEDS),
    "SampleDistortedBoundingBoxV2": call([50, 40, 3], [[[0.1, 0.2, 0.6, 0.9]]], 0.3, **SEEDS),
    "StatelessRandomUniformFullInt": call([2, 3], KEY, dtype=3),
}
TRUE = np.array([[1, 2], [0, 1]], np.int64)
COUNTS = {"num_true": 2, "num_sampled": 4, "unique": True, **SEEDS}
EXAMPLES |= {
    name: call(TRUE, range_max=9, **COUNTS)
    for name in (
        "UniformCandidateSampler",
        "LogUniformCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler",
    )
}
EXAMPLES |= {
    "AllCandidateSampler": call(TRUE, **COUNTS),
    "FixedUnigramCandidateSampler": call(
        TRUE, range_max=5, unigrams=[1.0, 2.0, 3.0, 4.0, 5.0], **COUNTS
    ),
    "ComputeAccidentalHits": call(TRUE, np.array([2, 7, 0], np.int64), num_true=2),
}
