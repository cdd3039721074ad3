"""``tf.keras.utils.Sequence``: a data set that gives any of its batches by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Sequence:
    """Batches by number; subclasses define ``__getitem__`` and ``__len__``.

    Example:
        >>> class Halves(tf.keras.utils.Sequence):
        ...     def __len__(self):
        ...         return 2
        ...     def __getitem__(self, index):
        ...         return x[index::2], y[index::2]
        >>> model.fit_generator(Halves(), epochs=3)
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]
