"""MNIST, Fashion-MNIST and other data sets in their four IDX files.

Nothing is downloaded: point `read_data_sets` at a folder that has the files. Debian and Ubuntu
package Fashion-MNIST (`apt-get install dataset-fashion-mnist`), which is found by itself.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runnel.datasets.dataset import (
    DataSet,
    DataSets,
    encode_one_hot,
    prepare_images,
    split_off_validation,
)
from runnel.datasets.idx import IdxFormatError, read_idx

NUM_CLASSES = 10
DEFAULT_VALIDATION_SIZE = 5000
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")

_WHITE = 255
_FAKE_EXAMPLES = 10_000
_WHERE_TO_GET_FILES = (
    "name the folder that has the four IDX files of MNIST or Fashion-MNIST, or on Debian "
    "`apt-get install dataset-fashion-mnist`, or use the digits that ship with runnel: "
    "runnel.datasets.digits.read_data_sets(image_size=28)"
)


def find_installed() -> Path | None:
    """Return the folder of Debian's `dataset-fashion-mnist`, or None where it is not installed."""
    return DEBIAN_FASHION_MNIST if _find_file(DEBIAN_FASHION_MNIST, "train", "images") else None


def read_data_sets(
    train_dir: str | os.PathLike[str] | None = None,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = DEFAULT_VALIDATION_SIZE,
    seed: int | None = None,
) -> DataSets:
    """Read `train`, `validation` and `test` from the IDX files in the folder `train_dir`.

    The files are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`,
    gzipped (`.gz`) or not. Without a folder, Debian's Fashion-MNIST is read if it is installed.

    Images are float32 in [0, 1], or uint8 from 0 to 255 with `dtype=np.uint8`; 784 numbers in a
    row, or [28, 28, 1] with `reshape=False`. Labels are uint8 classes, or one-hot float32 rows.
    The first `validation_size` training examples are for validation. `seed` fixes the order of the
    batches. With `fake_data` no file is read: the sets hold 10,000 examples of ones.

    Raises `FileNotFoundError` where a file is missing, and `IdxFormatError` (a `ValueError`) where
    one is damaged or does not fit the others.

        mnist = runnel.datasets.mnist.read_data_sets("MNIST_data/", one_hot=True)
        batch_xs, batch_ys = mnist.train.next_batch(100)
    """
    if fake_data:
        return _fake_data_sets(one_hot, dtype, reshape, seed)
    folder = _choose_folder(train_dir)
    train_images, train_labels = _read_part(folder, "train")
    test_images, test_labels = _read_part(folder, "t10k")
    if train_images.shape[1:] != test_images.shape[1:]:
        raise IdxFormatError(
            f"the training images in {folder} have {_times(train_images.shape[1:])} pixels and the "
            f"test images {_times(test_images.shape[1:])}; the files are of two data sets"
        )
    validation, train = split_off_validation(len(train_images), validation_size)

    def part(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> DataSet:
        classes = encode_one_hot(labels, NUM_CLASSES) if one_hot else labels
        return DataSet(prepare_images(images, _WHITE, dtype, reshape), classes, seed=seed)

    return DataSets(
        train=part(train_images[train], train_labels[train]),
        validation=part(train_images[validation], train_labels[validation]),
        test=part(test_images, test_labels),
    )


def _choose_folder(train_dir: str | os.PathLike[str] | None) -> Path:
    if train_dir is not None:
        folder = Path(train_dir).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}; {_WHERE_TO_GET_FILES}")
        return folder
    installed = find_installed()
    if installed is None:
        raise FileNotFoundError(
            f"no folder was given, and {DEBIAN_FASHION_MNIST} has no Fashion-MNIST; "
            + _WHERE_TO_GET_FILES
        )
    return installed


def _file_names(part: str, kind: str) -> list[str]:
    # The names that the files are published under, and with a dot, as some archives have them.
    kind_and_type = f"{kind}-idx3-ubyte" if kind == "images" else f"{kind}-idx1-ubyte"
    plain = [f"{part}-{kind_and_type}", f"{part}-{kind_and_type.replace('-', '.', 1)}"]
    return [name + suffix for name in plain for suffix in ("", ".gz")]


def _find_file(folder: Path, part: str, kind: str) -> Path | None:
    candidates = (folder / name for name in _file_names(part, kind))
    return next((path for path in candidates if path.is_file()), None)


def _read_part(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images_path = _require_file(folder, part, "images")
    labels_path = _require_file(folder, part, "labels")
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise IdxFormatError(
            f"{images_path} has {len(images)} images and {labels_path} has {len(labels)} labels; "
            "the two files do not belong together"
        )
    if len(labels) and labels.max() >= NUM_CLASSES:
        raise IdxFormatError(
            f"{labels_path} has the label {labels.max()} (at {int(labels.argmax())}); "
            f"labels are from 0 to {NUM_CLASSES - 1}"
        )
    return images, labels


def _require_file(folder: Path, part: str, kind: str) -> Path:
    path = _find_file(folder, part, kind)
    if path is None:
        names = _file_names(part, kind)
        raise FileNotFoundError(
            f"{folder} has neither {names[0]} nor {names[1]}; {_WHERE_TO_GET_FILES}"
        )
    return path


def _fake_data_sets(one_hot: bool, dtype: Any, reshape: bool, seed: int | None) -> DataSets:
    pixels = np.full((_FAKE_EXAMPLES, 28, 28), _WHITE, np.uint8)
    images = prepare_images(pixels, _WHITE, dtype, reshape)
    classes = np.zeros(_FAKE_EXAMPLES, np.uint8)
    labels = encode_one_hot(classes, NUM_CLASSES) if one_hot else classes
    return DataSets(*(DataSet(images, labels, seed=seed) for _ in DataSets._fields))


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
