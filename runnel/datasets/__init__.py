"""Small data sets, in the shape that TensorFlow 1's tutorials use.

`digits` ships with runnel and needs no download; `mnist` reads the IDX files of MNIST and
Fashion-MNIST from a folder. Both return a `DataSets` with `train`, `validation` and `test`.
Only NumPy is used here.

    >>> from runnel.datasets import digits
    >>> data = digits.read_data_sets(one_hot=True, seed=0)
    >>> images, labels = data.train.next_batch(100)
    >>> images.shape, labels.shape
    ((100, 64), (100, 10))
"""

from runnel.datasets import digits, mnist
from runnel.datasets.dataset import DataSet, DataSets
from runnel.datasets.idx import IdxFormatError

__all__ = ["DataSet", "DataSets", "IdxFormatError", "digits", "mnist"]


def __dir__() -> list[str]:
    return __all__
