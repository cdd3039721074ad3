"""``tf.contrib.learn.datasets``: MNIST, from files or replaced by digits that ship with runnel."""

from __future__ import annotations

from typing import Any

from runnel.examples.tutorials.mnist import input_data as mnist

__all__ = ["load_dataset", "mnist"]


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set ``name``, of which there is ``"mnist"``, in the folder ``MNIST-data``."""
    if name != "mnist":
        raise ValueError(f"Name of dataset is not found: {name}; there is: mnist")
    return mnist.read_data_sets("MNIST-data", fake_data=test_with_fake_data)


def __dir__() -> list[str]:
    return __all__
