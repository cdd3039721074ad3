"""``tf.contrib.learn.datasets``: MNIST and Iris, from files or from what ships with runnel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.learn.datasets import base
from runnel.contrib.learn.datasets.base import load_iris
from runnel.contrib.learn.datasets.text_datasets import load_dbpedia
from runnel.examples.tutorials.mnist import input_data as mnist

__all__ = ["base", "load_dataset", "load_dbpedia", "load_iris", "mnist"]

_LOADED: dict[str, Callable[..., Any]] = {
    "dbpedia": load_dbpedia,
    "iris": lambda size, test_with_fake_data: load_iris(),
    "mnist": lambda size, test_with_fake_data: mnist.read_data_sets(
        "MNIST-data", fake_data=test_with_fake_data
    ),
}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set ``name``: "iris", "mnist" in the folder ``MNIST-data``, or "dbpedia".

    Example:
        >>> iris = tf.contrib.learn.datasets.load_dataset("iris")
        >>> iris.data.shape
        (150, 4)
    """
    if name not in _LOADED:
        raise ValueError(f"Name of dataset is not found: {name}; there are: {sorted(_LOADED)}")
    return _LOADED[name](size, test_with_fake_data)


def __dir__() -> list[str]:
    return __all__
