"""Texts of classes: DBpedia, from its files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runnel.contrib.learn.datasets.base import Datasets, load_csv_without_header

__all__ = ["load_dbpedia"]


def load_dbpedia(size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The texts of ``dbpedia_data/dbpedia_csv``: ``train.csv`` and ``test.csv``.

    Each row has a class, a title and a text. ``size`` "small" takes each 256th row for training.
    """
    folder = os.path.join("dbpedia_data", "dbpedia_csv")
    files = {name: os.path.join(folder, f"{name}.csv") for name in ("train", "test")}
    missing = [path for path in files.values() if not os.path.exists(path)]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)}: missing, and runnel downloads nothing; put the files of the "
            "DBpedia ontology classification data set there"
        )
    found = {
        name: load_csv_without_header(path, np.int32, np.str_, target_column=0)
        for name, path in files.items()
    }
    train = found["train"]
    if size == "small" and len(train.data) > 256 * 256:
        train = train._replace(data=train.data[::256], target=train.target[::256])
    return Datasets(train=train, validation=None, test=found["test"])


def __dir__() -> list[str]:
    return __all__
