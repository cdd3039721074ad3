"""A table at run time: a dictionary that steps share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import FailedPreconditionError, InvalidArgumentError


class TableState:
    """Values by keys, both of one type; a *static* table is filled once, and not changed."""

    def __init__(self, name: str, keys: DType, values: DType, static: bool) -> None:
        self.name, self.key_dtype, self.value_dtype = name, keys, values
        self._static = static
        self._initialized = not static
        # Guards _content and _initialized.
        self._lock = threading.Lock()
        self._content: dict[Any, Any] = {}

    def require_types(self, keys: DType, values: DType) -> None:
        """An error unless the table is from ``keys`` to ``values``."""
        if (keys, values) != (self.key_dtype, self.value_dtype):
            raise InvalidArgumentError(
                None,
                None,
                f"The table {self.name!r} is from {self.key_dtype.name} to "
                f"{self.value_dtype.name}, but {keys.name} and {values.name} are given.",
            )

    def initialize(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Fills a static table; one that is filled stays as it is."""
        if not self._static:
            raise InvalidArgumentError(None, None, f"The table {self.name!r} is not a static one.")
        with self._lock:
            if self._initialized:
                return
            content: dict[Any, Any] = {}
            for key, value in pairs:
                if content.setdefault(key, value) != value:
                    raise FailedPreconditionError(
                        None,
                        None,
                        f"HashTable has different value for same key. Key {key!r} has "
                        f"{content[key]!r} and trying to add value {value!r}",
                    )
            self._content, self._initialized = content, True

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of each key, or ``default``."""
        with self._lock:
            self._require_initialized()
            get = self._content.get
            found = [get(key) for key in _plain(keys)]
        out = np.empty((len(found), *default.shape), self.value_dtype.np_dtype)
        out[...] = default
        for i, value in enumerate(found):
            if value is not None:
                out[i] = value
        return out.reshape((*keys.shape, *default.shape))

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Sets the values of some keys."""
        self._require_mutable()
        rows = values.reshape((keys.size, *values.shape[keys.ndim :]))
        with self._lock:
            for key, value in zip(_plain(keys), rows, strict=True):
                self._content[key] = np.array(value)[()] if rows.ndim > 1 else value

    def remove(self, keys: np.ndarray) -> None:
        """Forgets some keys."""
        self._require_mutable()
        with self._lock:
            for key in _plain(keys):
                self._content.pop(key, None)

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forgets everything, and sets the values of some keys."""
        self._require_mutable()
        with self._lock:
            self._content = {}
        self.insert(keys, values)

    def size(self) -> int:
        """How many keys it has."""
        with self._lock:
            self._require_initialized()
            return len(self._content)

    def export(self, value_dims: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
        """All keys, and their values."""
        with self._lock:
            self._require_initialized()
            keys = np.empty(len(self._content), self.key_dtype.np_dtype)
            keys[:] = list(self._content)
            values = np.empty((len(self._content), *value_dims), self.value_dtype.np_dtype)
            for i, value in enumerate(self._content.values()):
                values[i] = value
        return keys, values

    def _require_initialized(self) -> None:
        if not self._initialized:
            raise FailedPreconditionError(
                None,
                None,
                f"Table not initialized: {self.name!r}. Run tf.tables_initializer() first.",
            )

    def _require_mutable(self) -> None:
        if self._static:
            raise InvalidArgumentError(
                None, None, f"The table {self.name!r} is static: it cannot be changed."
            )

    def abandon(self, error: Exception) -> None:
        """It is gone with its session; nobody waits for it."""


def _plain(keys: np.ndarray) -> list[Any]:
    return np.asarray(keys).reshape(-1).tolist()
