"""Estimates of how long a traced computation runs."""

import jax
import numpy as np
from jax import lax

from runnel.runtime.compile.work_estimate import seconds_of


def test_reading_a_row_takes_as_long_as_the_row_is_not_as_the_array():
    def estimated(rows):
        read = jax.make_jaxpr(lambda x, i: lax.dynamic_index_in_dim(x, i) * 2)
        return seconds_of(read(np.zeros([rows, 100], np.float32), np.int32(0)).jaxpr, "cpu")

    assert estimated(100_000) == estimated(10)
