"""``input_data.read_data_sets``, with which TensorFlow 1's tutorials begin."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runnel import logging
from runnel.datasets import digits, mnist
from runnel.datasets.dataset import DataSets

__all__ = ["read_data_sets"]


def read_data_sets(
    train_dir: str | os.PathLike[str],
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = mnist.DEFAULT_VALIDATION_SIZE,
    seed: int | None = None,
    source_url: str | None = None,
) -> DataSets:
    """MNIST from the four IDX files in the folder ``train_dir``.

    Nothing is downloaded. Where the files are missing, a warning says so and the digits that ship
    with runnel, drawn at MNIST's size, take their place: programs run, on fewer examples.

    Example:
        >>> data = input_data.read_data_sets("MNIST_data/", one_hot=True)
    """
    dtype = getattr(dtype, "as_numpy_dtype", dtype)
    try:
        return mnist.read_data_sets(
            train_dir, fake_data, one_hot, dtype, reshape, validation_size, seed
        )
    except FileNotFoundError as error:
        logging.warning(
            "%s. The 1,797 digits that ship with runnel, drawn at 28 x 28, take MNIST's place",
            error,
        )
    return digits.read_data_sets(
        one_hot=one_hot, dtype=dtype, reshape=reshape, seed=seed, image_size=28
    )
