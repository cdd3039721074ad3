"""Files in the format ``safetensors``: a header in JSON, then the bytes of the tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from runnel.checkpoint.checksum import byte_chunks
from runnel.checkpoint.element_bytes import stored_problem
from runnel.checkpoint.tensor_slice import TensorSlice
from runnel.checkpoint.whole_file import appearing, sync_folder
from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)

SUFFIX = ".safetensors"
_MAX_HEADER = 100_000_000
_TYPES: dict[str, DType] = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "U16": dtypes.uint16,
    "I16": dtypes.int16,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "U32": dtypes.uint32,
    "I32": dtypes.int32,
    "F32": dtypes.float32,
    "C64": dtypes.complex64,
    "U64": dtypes.uint64,
    "I64": dtypes.int64,
    "F64": dtypes.float64,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def write_safetensors(
    path: str, tensors: Mapping[str, tuple[DType, np.ndarray]], metadata: Mapping[str, str]
) -> None:
    """Writes tensors by name; the file appears whole."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    # The widest first, so that each begins at a multiple of its size.
    order = sorted(tensors, key=lambda name: (-tensors[name][1].itemsize, name))
    for name in order:
        dtype, array = tensors[name]
        if dtype not in _NAMES:
            raise InvalidArgumentError(
                None, None, f"{name!r} is {dtype.name}, which the format safetensors does not have"
            )
        end = offset + array.nbytes
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with appearing(path) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            array = tensors[name][1]
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)
    sync_folder(os.path.dirname(path))


class SafetensorsReader:
    """Reads tensors, and slices of them, from a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            size = os.path.getsize(path)
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if not 2 <= length <= min(size - 8, _MAX_HEADER):
                    raise self._damaged(f"its header would be {length} bytes of {size}")
                text = file.read(length)
        except FileNotFoundError:
            raise NotFoundError(None, None, f"There is no file {path!r}.") from None
        self._begin = 8 + length
        self._entries: dict[str, tuple[DType, tuple[int, ...], int]] = {}
        self._unreadable: dict[str, str] = {}
        """Tensors of types that no tensor has here, and their types."""
        self._parse(text, size - self._begin)

    def _parse(self, text: bytes, size: int) -> None:
        try:
            header = json.loads(text)
            header.pop("__metadata__", None)
            entries = sorted(header.items(), key=lambda one: one[1]["data_offsets"])
            end = 0
            for name, entry in entries:
                dtype = _TYPES.get(entry["dtype"])
                shape = tuple(entry["shape"])
                begin, stop = entry["data_offsets"]
                if not all(type(n) is int and n >= 0 for n in (*shape, begin, stop)):
                    raise self._damaged(f"{name!r} has no proper shape or place")
                if dtype is not None and (problem := stored_problem(dtype, shape)):
                    raise self._damaged(f"{name!r} cannot be: {problem}")
                fits = stop >= begin if dtype is None else stop - begin == prod(shape) * dtype.size
                if begin != end or not fits:
                    raise self._damaged(f"{name!r} is not where, or as large as, it should be")
                end = stop
                if dtype is None:
                    self._unreadable[name] = str(entry["dtype"])
                else:
                    self._entries[name] = dtype, shape, begin
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._damaged(f"its header cannot be read ({error!r})") from None
        if end != size:
            raise self._damaged(f"it has {size} bytes of data, but its header says {end}")

    def _damaged(self, why: str) -> DataLossError:
        return DataLossError(None, None, f"{self._path} is damaged, or no such file: {why}.")

    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._entries)

    def has(self, name: str) -> bool:
        """True for the name of a tensor that is there and can be read."""
        return name in self._entries

    def type_and_shape(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """What is stored under ``name``."""
        dtype, shape, _ = self._entry(name)
        return dtype, shape

    def _entry(self, name: str) -> tuple[DType, tuple[int, ...], int]:
        if name in self._unreadable:
            raise UnimplementedError(
                None,
                None,
                f"The tensor {name!r} of {self._path!r} has the type {self._unreadable[name]}, "
                "which no tensor has here.",
            )
        if name not in self._entries:
            raise NotFoundError(None, None, f"The file {self._path!r} has no tensor {name!r}.")
        return self._entries[name]

    def tensor(self, name: str) -> np.ndarray:
        """The tensor ``name``."""
        dtype, shape, begin = self._entry(name)
        found = np.empty(shape, np.dtype(dtype.np_dtype).newbyteorder("<"))
        with open(self._path, "rb") as file:
            file.seek(self._begin + begin)
            for piece in byte_chunks(found):
                if file.readinto(piece.data) != len(piece):
                    raise self._damaged(f"{name!r} is cut off")
        return found.astype(dtype.np_dtype, copy=False)

    def slice(self, name: str, part: TensorSlice) -> np.ndarray:
        """A slice of the tensor ``name``."""
        try:
            return np.ascontiguousarray(self.tensor(name)[part.bounds(self._entry(name)[1])])
        except ValueError as error:
            raise InvalidArgumentError(
                None, None, f"{name!r} in {self._path!r}: {error}."
            ) from None
