"""Fisher's irises, which ship with runnel.

The length and width of the sepals and petals, in centimetres, of 150 flowers of three kinds (R. A.
Fisher, "Iris", UCI Machine Learning Repository, 1936, CC BY 4.0). `tools/make_iris.py` makes the
file.
"""

import functools
from importlib import resources

import numpy as np
from numpy.typing import NDArray

_TENTHS = 10.0


@functools.cache
def load_iris() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the measures, [150, 4], and the kinds: 0 setosa, 1 versicolor, 2 virginica."""
    file = resources.files("runnel.datasets").joinpath("iris.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        measures, kinds = arrays["tenths"] / _TENTHS, arrays["kinds"]
    # The cached arrays are everybody's.
    measures.setflags(write=False)
    kinds.setflags(write=False)
    return measures, kinds
