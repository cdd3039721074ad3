"""The UCI handwritten digits, which ship with runnel.

1,797 images of 8 x 8 pixels with 17 grey levels, ten classes: the test part of "Optical
Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine Learning Repository,
1998, CC BY 4.0), as scikit-learn's `load_digits` has it. `tools/make_digits.py` makes the file.
"""

import functools
from importlib import resources
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
from runnel.datasets.enlarge import centre_in_frame, enlarge

NUM_CLASSES = 10
IMAGE_SIZE = 8
TEST_SIZE = 360
DEFAULT_VALIDATION_SIZE = 180

_WHITE = 16
# Any fixed number would do: it says which examples are held out, once and for all.
_SPLIT_SEED = 1797
# MNIST draws a digit in the middle 20 x 20 of 28 x 28 pixels.
_MNIST_SIZE, _MNIST_BOX = 28, 20


@functools.cache
def load_digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images, [1797, 8, 8] from 0 to 16, and their classes, in the original order."""
    file = resources.files("runnel.datasets").joinpath("digits.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    # The cached arrays are everybody's.
    images.setflags(write=False)
    labels.setflags(write=False)
    return images, labels


def read_data_sets(
    one_hot: bool = True,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = DEFAULT_VALIDATION_SIZE,
    seed: int | None = None,
    image_size: int = IMAGE_SIZE,
    interpolation: str = "bilinear",
) -> DataSets:
    """Return the digits as `train`, `validation` and `test`.

    Images are float32 in [0, 1], or uint8 from 0 to 16 with `dtype=np.uint8`; 64 numbers in a row,
    or [8, 8, 1] with `reshape=False`. Labels are one-hot float32 rows, or uint8 classes with
    `one_hot=False`. The split is fixed: the same 360 examples are always for testing, and of the
    other 1,437 the first `validation_size` for validation. It is a random split, so the same
    writers occur in all parts. `seed` fixes the order of the training batches, nothing else.

    `image_size=28` is a stand-in for programs written for MNIST's 784 numbers where MNIST is not
    at hand: the same 8 x 8 digits, enlarged ("bilinear" or "nearest") to the 20 x 20 pixels in the
    middle of 28 x 28 that a digit has there. That adds pixels and no information. There are 30
    times fewer examples than in MNIST, and accuracies cannot be compared with MNIST's.

        >>> data = read_data_sets(image_size=28)
        >>> data.train.images.shape, data.test.num_examples
        ((1257, 784), 360)
    """
    images, labels = load_digits()
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(images))
    prepared = prepare_images(
        _draw(images[order], image_size, interpolation), _WHITE, dtype, reshape
    )
    classes = encode_one_hot(labels[order], NUM_CLASSES) if one_hot else labels[order]
    validation, train = split_off_validation(len(order) - TEST_SIZE, validation_size)
    test = slice(len(order) - TEST_SIZE, None)
    return DataSets(
        *(DataSet(prepared[p], classes[p], seed=seed) for p in (train, validation, test))
    )


def _draw(pixels: NDArray[np.uint8], image_size: int, interpolation: str) -> NDArray[Any]:
    if image_size == IMAGE_SIZE:
        return pixels
    if image_size != _MNIST_SIZE:
        raise ValueError(
            f"image_size is {image_size!r}; the digits come at {IMAGE_SIZE} (as they are) or at "
            f"{_MNIST_SIZE} (enlarged to MNIST's layout)"
        )
    return centre_in_frame(enlarge(pixels, _MNIST_BOX, interpolation), _MNIST_SIZE)
