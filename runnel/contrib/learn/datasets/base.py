"""Data sets as a table and its targets, from CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from runnel.datasets.iris import load_iris as _iris
from runnel.gfile import GFile

__all__ = [
    "Dataset",
    "Datasets",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_iris",
    "maybe_download",
    "shrink_csv",
]


class Dataset(NamedTuple):
    """Rows of features, and the target of each."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """What is trained on, and what is not."""

    train: Any
    validation: Any
    test: Any


def _rows(filename: Any) -> Iterator[list[str]]:
    with GFile(filename) as file:
        yield from (row for row in csv.reader(file) if row)


def _table(
    rows: Iterator[list[str]], target_dtype: Any, features_dtype: Any, target_column: int
) -> Dataset:
    targets, features = [], []
    for row in rows:
        targets.append(row.pop(target_column))
        features.append(row)
    # A number may be written as "1.0" where integers are wanted.
    kind = np.dtype(target_dtype)
    numbers = [float(t) for t in targets] if kind.kind in "iuf" else targets
    return Dataset(np.array(features).astype(features_dtype), np.array(numbers).astype(kind))


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table whose first line says how many rows and features there are.

    Example:
        >>> tf.contrib.learn.datasets.base.load_csv_with_header("iris.csv", int, np.float32)
    """
    rows = _rows(filename)
    header = next(rows)
    found = _table(rows, target_dtype, features_dtype, target_column)
    if len(found.data) != int(header[0]):
        raise ValueError(
            f"{filename} says that it has {header[0]} rows, but it has {len(found.data)}"
        )
    return found


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table that begins with its first row."""
    return _table(_rows(filename), target_dtype, features_dtype, target_column)


def shrink_csv(filename: str, ratio: int) -> str:
    """Writes every ``ratio``-th line of a file to another one; returns its name."""
    small = filename.replace(".", "_small.")
    with open(filename) as source, open(small, "w") as kept:
        kept.writelines(line for number, line in enumerate(source) if number % ratio == 0)
    return small


def load_iris(data_path: Any = None) -> Dataset:
    """Fisher's irises: four measures of 150 flowers of three kinds; they ship with runnel."""
    if data_path is not None:
        return load_csv_with_header(data_path, int, float)
    measures, kinds = _iris()
    return Dataset(measures.astype(np.float64), kinds.astype(np.int64))


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The file ``filename`` of a folder, which must be there: runnel downloads nothing."""
    found = os.path.join(work_directory, filename)
    if not os.path.exists(found):
        raise FileNotFoundError(
            f"{found} is missing, and runnel downloads nothing: get it from {source_url}"
        )
    return found


def __dir__() -> list[str]:
    return __all__
