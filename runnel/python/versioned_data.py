"""Names of ``dataset_ops`` and ``iterator_ops`` with a version: there is one of each."""

from runnel.data import Dataset, Iterator

DatasetV1 = DatasetV1Adapter = DatasetV2 = Dataset
IteratorV2 = Iterator

__all__ = ["DatasetV1", "DatasetV1Adapter", "DatasetV2", "IteratorV2"]
