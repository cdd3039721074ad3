"""What a session gives for a ragged tensor."""

from __future__ import annotations

from typing import Any

import numpy as np


class RaggedTensorValue:
    """``values`` cut into rows at ``row_splits``; ``values`` may itself be cut into rows.

    Example:
        >>> RaggedTensorValue(np.array([1, 2, 3]), np.array([0, 2, 3])).to_list()
        [[1, 2], [3]]
    """

    __slots__ = ("_values", "_row_splits")

    def __init__(self, values: Any, row_splits: Any) -> None:
        splits = np.asarray(row_splits)
        if splits.dtype not in (np.int32, np.int64):
            raise TypeError(f"row_splits must have dtype int32 or int64, not {splits.dtype}")
        self._values: Any = values if isinstance(values, RaggedTensorValue) else np.asarray(values)
        self._row_splits = splits

    @property
    def values(self) -> Any:
        """The rows one after the other: an array, or another such value."""
        return self._values

    @property
    def row_splits(self) -> np.ndarray:
        """Where rows begin; the last number is where the last row ends."""
        return self._row_splits

    @property
    def flat_values(self) -> np.ndarray:
        """The innermost values."""
        return self._values.flat_values if self._is_nested else self._values

    @property
    def nested_row_splits(self) -> tuple[np.ndarray, ...]:
        """The splits of every ragged dimension, the outermost first."""
        inner = self._values.nested_row_splits if self._is_nested else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> np.dtype:
        return self._values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """None for each ragged dimension."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    @property
    def _is_nested(self) -> bool:
        return isinstance(self._values, RaggedTensorValue)

    def to_list(self) -> list[Any]:
        """Nested lists."""
        rows = self._values.to_list() if self._is_nested else self._values.tolist()
        splits = self._row_splits.tolist()
        return [rows[a:b] for a, b in zip(splits[:-1], splits[1:], strict=True)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"
