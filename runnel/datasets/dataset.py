"""Labelled images that are handed out in shuffled batches, epoch after epoch."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class DataSet:
    """Images with their labels, and a position in an endless sequence of epochs.

    The batches are those of TensorFlow 1.15's tutorial `DataSet`: with `shuffle`, every epoch is
    a new permutation, and a batch that reaches the end of an epoch continues into the next. With
    the same seed they are the same batches, bit for bit. Two things differ: the random state is
    private, so drawing from one set never disturbs another or `numpy.random`; and `images` and
    `labels` stay in the order in which they were given.

    Not safe for use by several threads at once; give each thread its own.

        >>> data = DataSet([[0.0], [1.0], [2.0]], [0, 1, 2])
        >>> data.next_batch(2, shuffle=False)[1]
        array([0, 1])
        >>> data.next_batch(2, shuffle=False)[1]
        array([2, 0])
        >>> data.epochs_completed
        1
    """

    def __init__(self, images: ArrayLike, labels: ArrayLike, *, seed: int | None = None) -> None:
        """Take `images` and `labels`, which agree in their first dimension.

        `seed` fixes the order of the shuffled batches; without one it differs from run to run.
        """
        self._images = np.asarray(images)
        self._labels = np.asarray(labels)
        if self._images.ndim < 1 or self._labels.ndim < 1:
            raise ValueError(
                "images and labels need a first dimension that counts examples, "
                f"but have the shapes {self._images.shape} and {self._labels.shape}"
            )
        if len(self._images) != len(self._labels):
            raise ValueError(
                f"there are {len(self._images)} images and {len(self._labels)} labels "
                f"(shapes {self._images.shape} and {self._labels.shape}); "
                "every image needs exactly one label"
            )
        # The legacy generator, because its stream is frozen: a seed means the same batches under
        # every NumPy, and the same ones as in TensorFlow 1.
        self._random = np.random.RandomState(seed)
        self._order = np.arange(len(self._images))
        self._index_in_epoch = 0
        self._epochs_completed = 0

    @property
    def images(self) -> NDArray[Any]:
        """All images, in the order in which they were given."""
        return self._images

    @property
    def labels(self) -> NDArray[Any]:
        """All labels, in the order of `images`: classes, or one row for each when one-hot."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many labelled images there are."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How many epochs have been left behind.

        A batch that ends exactly at the end of an epoch does not leave it; the next batch does.
        """
        return self._epochs_completed

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the next `batch_size` images and labels.

        A batch that spans the end of an epoch holds the rest of that epoch and then the beginning
        of the next, reshuffled one; a batch longer than the data spans several. `shuffle=False`
        keeps the order as it is. `fake_data=True` returns images of ones with the label 0, without
        moving on, for trying out a program.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer):
            raise TypeError(f"batch_size is {batch_size!r}; it must be an integer")
        if batch_size < 0:
            raise ValueError(f"batch_size is {batch_size}; it must not be negative")
        if fake_data:
            return self._fake_batch(int(batch_size))
        if batch_size == 0:
            return self._images[:0], self._labels[:0]
        if self.num_examples == 0:
            raise ValueError(
                f"next_batch({batch_size}) on a data set with no examples; "
                "was the whole of the data assigned to another part (see validation_size)?"
            )
        chosen = self._next_indices(int(batch_size), shuffle)
        return self._images[chosen], self._labels[chosen]

    def _next_indices(self, batch_size: int, shuffle: bool) -> NDArray[np.intp]:
        if shuffle and self._epochs_completed == 0 and self._index_in_epoch == 0:
            self._shuffle()
        parts = []
        wanted = batch_size
        while wanted > self.num_examples - self._index_in_epoch:
            rest = self._order[self._index_in_epoch :]
            parts.append(rest)
            wanted -= len(rest)
            self._epochs_completed += 1
            self._index_in_epoch = 0
            if shuffle:
                self._shuffle()
        parts.append(self._order[self._index_in_epoch : self._index_in_epoch + wanted])
        self._index_in_epoch += wanted
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _shuffle(self) -> None:
        # Shuffle positions and compose, rather than shuffle the order itself: this is how the
        # tutorial's DataSet arrives at its sequence of batches.
        permutation = np.arange(self.num_examples)
        self._random.shuffle(permutation)
        self._order = self._order[permutation]

    def _fake_batch(self, batch_size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        images = np.ones((batch_size, *self._images.shape[1:]), self._images.dtype)
        labels = np.zeros((batch_size, *self._labels.shape[1:]), self._labels.dtype)
        if labels.ndim > 1:
            labels[:, 0] = 1
        return images, labels

    def __repr__(self) -> str:
        """Show the sizes and the position."""
        return (
            f"DataSet(images={self._images.dtype}{list(self._images.shape)}, "
            f"labels={self._labels.dtype}{list(self._labels.shape)}, "
            f"epochs_completed={self._epochs_completed})"
        )


class DataSets(NamedTuple):
    """The three parts of a data set."""

    train: DataSet
    validation: DataSet
    test: DataSet


def prepare_images(pixels: NDArray[Any], maximum: int, dtype: Any, reshape: bool) -> NDArray[Any]:
    """Give `pixels` ([examples, rows, columns], 0 to `maximum`) the form that callers ask for.

    As `float32` they are scaled to [0, 1]; as `uint8` they stay as they are. With `reshape` an
    image becomes a row of numbers, otherwise it is [rows, columns, 1].
    """
    # A runnel element type knows its NumPy one.
    wanted: DTypeLike = getattr(dtype, "as_numpy_dtype", dtype)
    if np.dtype(wanted) not in (np.dtype(np.float32), np.dtype(np.uint8)):
        raise TypeError(f"dtype is {dtype!r}; images come as uint8 or as float32 in [0, 1]")
    images = pixels
    if np.dtype(wanted) == np.float32:
        images = pixels.astype(np.float32) * np.float32(1 / maximum)
    rows, columns = pixels.shape[1:]
    # Spelled out, since -1 cannot be inferred for zero examples.
    return images.reshape((len(images), rows * columns) if reshape else (*images.shape, 1))


def encode_one_hot(labels: NDArray[Any], num_classes: int) -> NDArray[np.float32]:
    """Return one float32 row for each label, with a one at the label's class.

    >>> encode_one_hot(np.array([1, 0]), 3)
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    return np.eye(num_classes, dtype=np.float32)[labels]


def split_off_validation(total: int, validation_size: int) -> tuple[slice, slice]:
    """Return which of `total` training examples are for validation (the first), and the rest."""
    if not 0 <= validation_size <= total:
        raise ValueError(
            f"validation_size is {validation_size}; it must be from 0 to {total}, "
            "the number of training examples that it is taken from"
        )
    return slice(0, validation_size), slice(validation_size, total)
