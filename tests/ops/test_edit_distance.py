"""The distance of sequences, against the table that defines it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runnel.ops.sparse.edit_distance import distance

SEQUENCES = st.lists(st.integers(0, 3), max_size=12) | st.lists(st.integers(0, 3), max_size=150)


@given(SEQUENCES, SEQUENCES)
def test_distance_is_the_shortest_way(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            replaced = table[i - 1, j - 1] + (x != y)
            table[i, j] = min(replaced, table[i - 1, j] + 1, table[i, j - 1] + 1)
    assert distance(a, b) == distance(b, a) == table[-1, -1]
