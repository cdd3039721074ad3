"""TensorFlow's first format of checkpoints: one table with slices of tensors, or several.

The empty key has what is in the table: names, shapes, types and slices. A slice is a
``TensorProto`` under a key of its own.
"""

from __future__ import annotations

import glob
import os
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from runnel.checkpoint.element_bytes import stored_problem
from runnel.checkpoint.ordered_code import slice_key
from runnel.checkpoint.protos import message
from runnel.checkpoint.table import TableReader, TableWriter, parse
from runnel.checkpoint.tensor_slice import TensorSlice, assembled
from runnel.checkpoint.whole_file import appearing, make_folder, sync_folder
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import DataLossError, InvalidArgumentError, NotFoundError
from runnel.graph.serialized_message import require_size, serialized_message
from runnel.graph.tensor_proto import decode_array, encode_values

_SECOND_FORMAT = "Save it with write_version=tf.train.SaverDef.V2, which has no such limit."


class V1Writer:
    """Writes tensors, and slices of them, into one table when the block ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._meta: dict[str, Any] = {}
        self._slices: dict[bytes, bytes] = {}

    def __enter__(self) -> V1Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self._finish()

    def add(self, name: str, array: Any, dtype: DType) -> None:
        """Adds a tensor."""
        array = np.asarray(array)
        self.add_slice(name, array.shape, TensorSlice(((0, None),) * array.ndim), array, dtype)

    def add_slice(
        self, name: str, shape: tuple[int, ...], part: TensorSlice, array: Any, dtype: DType
    ) -> None:
        """Adds a slice of a tensor of ``shape``."""
        array = np.asarray(array)
        if array.shape != tuple([b.stop - b.start for b in part.bounds(shape)]):
            raise InvalidArgumentError(
                None, None, f"{name!r}: a tensor of shape {array.shape} is not the slice {part}."
            )
        meta = self._meta.get(name)
        if meta is None:
            meta = self._meta[name] = message("SavedSliceMeta")(
                name=name, type=dtype.as_datatype_enum
            )
            meta.shape.SetInParent()
            for size in shape:
                meta.shape.dim.add(size=size)
        part.as_proto(meta.slice.add())
        what = f"The tensor {name!r} in this format of checkpoints"
        require_size(array.nbytes, what, _SECOND_FORMAT)
        saved = message("SavedTensorSlices")()
        saved.data.name = name
        part.as_proto(saved.data.slice)
        saved.data.data.CopyFrom(encode_values(array, dtype))
        saved.data.data.ClearField("tensor_shape")
        self._slices[slice_key(name, part)] = serialized_message(saved, what, _SECOND_FORMAT)

    def _finish(self) -> None:
        described = message("SavedTensorSlices")()
        described.meta.tensor.extend(self._meta[name] for name in sorted(self._meta))
        described.meta.versions.producer = 1
        make_folder(os.path.dirname(self._path))
        with appearing(self._path) as file:
            table = TableWriter(file)
            table.add(b"", described.SerializeToString())
            for key in sorted(self._slices):
                table.add(key, self._slices[key])
            table.finish()
        sync_folder(os.path.dirname(self._path))


class V1Reader:
    """Reads tensors, and slices of them, from the tables that a pattern names."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._files = sorted(glob.glob(pattern)) or ([pattern] if Path(pattern).is_file() else [])
        if not self._files:
            raise NotFoundError(None, None, f"There is no checkpoint {pattern!r}.")
        self._meta: dict[str, list[tuple[str, Any]]] = {}
        for name in self._files:
            with open(name, "rb") as file:
                described = TableReader(file, name).get(b"")
            saved = parse(message("SavedTensorSlices")(), described or b"", name)
            for meta in saved.meta.tensor:
                self._meta.setdefault(meta.name, []).append((name, meta))
        self.shards = len(self._files)

    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._meta)

    def has(self, name: str) -> bool:
        """True for the name of a tensor that is there."""
        return name in self._meta

    def type_and_shape(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """What is stored under ``name``."""
        if name not in self._meta:
            raise NotFoundError(
                None, None, f"The checkpoint {self._pattern!r} has no tensor {name!r}."
            )
        meta = self._meta[name][0][1]
        shape = tuple([dim.size for dim in meta.shape.dim])
        try:
            dtype = as_dtype(meta.type)
        except TypeError:
            raise self._damaged(name, f"its type is {meta.type}") from None
        if problem := stored_problem(dtype, shape):
            raise self._damaged(name, problem)
        return dtype, shape

    def _damaged(self, name: str, why: str) -> DataLossError:
        return DataLossError(
            None, None, f"{name!r} in the checkpoint {self._pattern!r} is damaged: {why}."
        )

    def tensor(self, name: str) -> np.ndarray:
        """The tensor ``name``."""
        _, shape = self.type_and_shape(name)
        return self.slice(name, TensorSlice(((0, None),) * len(shape)))

    def slice(self, name: str, part: TensorSlice) -> np.ndarray:
        """A slice of the tensor ``name``."""
        dtype, shape = self.type_and_shape(name)
        stored = [
            (found, partial(self._read, file, name, found, shape, dtype))
            for file, meta in self._meta[name]
            for found in map(TensorSlice.from_proto, meta.slice)
        ]
        try:
            return assembled(shape, part, stored, dtype.np_dtype)
        except ValueError as error:
            raise InvalidArgumentError(
                None, None, f"{name!r} in the checkpoint {self._pattern!r}: {error}."
            ) from None

    def _read(
        self, file: str, name: str, part: TensorSlice, shape: tuple[int, ...], dtype: DType
    ) -> np.ndarray:
        with open(file, "rb") as opened:
            found = TableReader(opened, file).get(slice_key(name, part))
        if found is None:
            raise self._damaged(name, f"the slice {part} is missing")
        proto = parse(message("SavedTensorSlices")(), found, file).data.data
        sizes = [bound.stop - bound.start for bound in part.bounds(shape)]
        if prod(sizes) > len(found):  # a message that repeats a value is not what is saved
            raise self._damaged(name, f"its {prod(sizes)} elements are not in {len(found)} bytes")
        proto.dtype = proto.dtype or dtype.as_datatype_enum  # TensorFlow leaves it out
        del proto.tensor_shape.dim[:]
        for size in sizes:
            proto.tensor_shape.dim.add(size=size)
        try:
            values, given = decode_array(proto)
        except (TypeError, ValueError) as error:
            raise self._damaged(name, str(error)) from None
        if given is not dtype:
            raise self._damaged(name, f"its type is {given.name}, not {dtype.name}")
        return values
