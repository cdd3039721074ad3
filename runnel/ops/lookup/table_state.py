"""A table at run time: a dictionary that steps share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType, string
from runnel.graph.errors import FailedPreconditionError, InvalidArgumentError
from runnel.ops.lookup.bucket_layout import BucketLayout


class TableState:
    """Values by keys, both of one type; a *static* table is filled once, and not changed.

    ``value_dims`` is the shape of a value. A table with a ``layout`` has keys of the shape of its
    empty key, and is exported as TensorFlow's dense tables are.
    """

    def __init__(
        self,
        name: str,
        keys: DType,
        values: DType,
        static: bool,
        value_dims: tuple[int, ...] = (),
        layout: BucketLayout | None = None,
    ) -> None:
        self.name, self.key_dtype, self.value_dtype = name, keys, values
        self.key_dims = () if layout is None else layout.empty_key.shape
        self.value_dims = value_dims
        self._static = static
        self._layout = layout
        self._reserved: dict[Any, str] = {}
        """Keys that the table cannot have, and what they are for."""
        if layout is not None:
            for what in ("empty_key", "deleted_key"):
                self._reserved[self._plain(getattr(layout, what))[0]] = what
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

    def require_same(self, other: TableState) -> None:
        """An error unless ``other``, which would share this table, describes the same."""
        self.require_types(other.key_dtype, other.value_dtype)
        for what in ("key_dims", "value_dims", "_reserved"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"The shared table {self.name!r} has {what.strip('_')} {ours}, but {theirs} "
                    "are given. Give one of them another shared_name",
                )

    @property
    def is_static(self) -> bool:
        """Whether it is filled once, and never changed."""
        return self._static

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
        if default.shape != self.value_dims:
            raise InvalidArgumentError(
                None,
                None,
                f"Expected shape {list(self.value_dims)} for default value of the table "
                f"{self.name!r}, got {list(default.shape)}",
            )
        rows = self._rows(keys)
        plain = self._permitted(keys)
        with self._lock:
            self._require_initialized()
            get = self._content.get
            missing = None if self.value_dims else default[()]
            found = [get(key, missing) for key in plain]
        out = np.empty((len(found), *default.shape), self.value_dtype.np_dtype)
        if not self.value_dims:
            out[:] = found
            return out.reshape(rows)
        out[...] = default
        for i, value in enumerate(found):
            if value is not None:
                out[i] = value
        return out.reshape((*rows, *default.shape))

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Sets the values of some keys."""
        self._require_mutable()
        plain, rows = self._pairs(keys, values)
        with self._lock:
            self._put(plain, rows)

    def _pairs(self, keys: np.ndarray, values: np.ndarray) -> tuple[list[Any], np.ndarray]:
        """Keys as they are kept, and a row of values for each."""
        expected = (*self._rows(keys), *self.value_dims)
        if values.shape != expected:
            raise InvalidArgumentError(
                None,
                None,
                f"Expected shape {list(expected)} for the values of the table {self.name!r}, got "
                f"{list(values.shape)}",
            )
        plain = self._permitted(keys)
        return plain, values.reshape((len(plain), *self.value_dims))

    def _put(self, plain: list[Any], rows: np.ndarray) -> None:
        for key, value in zip(plain, rows, strict=True):
            self._content[key] = np.array(value)[()] if rows.ndim > 1 else value

    def remove(self, keys: np.ndarray) -> None:
        """Forgets some keys."""
        self._require_mutable()
        self._rows(keys)
        plain = self._permitted(keys)
        with self._lock:
            for key in plain:
                self._content.pop(key, None)

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forgets everything, and sets the values of some keys."""
        self._require_mutable()
        if self._layout is not None:
            kept = self._layout.is_key(keys)
            keys = keys[kept].reshape((-1, *self.key_dims))
            values = values[kept].reshape((-1, *self.value_dims))
        plain, rows = self._pairs(keys, values)
        with self._lock:
            self._content = {}
            self._put(plain, rows)

    def size(self) -> int:
        """How many keys it has."""
        with self._lock:
            self._require_initialized()
            return len(self._content)

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys, and their values; all buckets of a table that has them."""
        with self._lock:
            self._require_initialized()
            if self._layout is not None:
                none = np.zeros(self.value_dims, self.value_dtype.np_dtype)
                if self.value_dtype is string:
                    none[...] = b""
                return self._layout.arrays(list(self._content), list(self._content.values()), none)
            keys = np.empty(len(self._content), self.key_dtype.np_dtype)
            keys[:] = list(self._content)
            values = np.empty((len(self._content), *self.value_dims), self.value_dtype.np_dtype)
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

    # Keys -----------------------------------------------------------------------------------

    def _rows(self, keys: np.ndarray) -> tuple[int, ...]:
        """The shape that keys have without that of a single one."""
        outer = keys.ndim - len(self.key_dims)
        if outer < 0 or keys.shape[outer:] != self.key_dims:
            raise InvalidArgumentError(
                None,
                None,
                f"Expected keys of shape {list(self.key_dims)} for the table {self.name!r}, got "
                f"{list(keys.shape)}",
            )
        return keys.shape[:outer]

    def _plain(self, keys: np.ndarray) -> list[Any]:
        """What stands for the keys in a dictionary."""
        if not self.key_dims:
            return np.asarray(keys).reshape(-1).tolist()
        single = int(np.prod(self.key_dims))
        rows = keys.size // single if single else int(np.prod(self._rows(keys)))
        return [tuple(row.tolist()) for row in np.reshape(keys, (rows, single))]

    def _permitted(self, keys: np.ndarray) -> list[Any]:
        plain = self._plain(keys)
        if self._reserved:
            for key in plain:
                if key in self._reserved:
                    raise InvalidArgumentError(
                        None,
                        None,
                        f"Using the {self._reserved[key]} {key!r} of {self.name!r} as a table key "
                        "is not allowed",
                    )
        return plain
