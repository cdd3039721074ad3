"""Operations that write and read checkpoints; the formats are in ``runnel.checkpoint``."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from runnel.checkpoint.bundle import BundleReader, BundleWriter, merge
from runnel.checkpoint.reading import checkpoint_exists, open_checkpoint
from runnel.checkpoint.tensor_slice import TensorSlice, parse_shape_and_slice, sizes_of
from runnel.checkpoint.v1 import V1Writer
from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.permitted_files import permitted
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import scalar
from runnel.ops.block_value import BlockValue, WholeBlocks


def _op(name: str, inputs: str, outputs: str = "", attrs: Any = ()) -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=list(attrs),
        stateful=True,
        host=True,
        holds_thread=True,
        differentiable=False,
    )


def _text(value: Any) -> str:
    content = np.asarray(value).item()
    return content if isinstance(content, str) else content.decode()


def _path(value: Any) -> str:
    return permitted(_text(value))


def _texts(values: Any) -> list[str]:
    return [_text(value) for value in np.asarray(values, object).reshape(-1)]


def _string(text: str) -> np.ndarray:
    out = np.empty((), object)
    out[()] = text.encode()
    return out


def _parsed(spec: str) -> Any:
    try:
        return parse_shape_and_slice(spec)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None


# Saving -----------------------------------------------------------------------------------------

save_v2_op = _op(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
    attrs=["dtypes: list(type) >= 1"],
)
save_op = _op(
    "Save", "filename: string, tensor_names: string, data: T", attrs=["T: list(type) >= 1"]
)
save_slices_op = _op(
    "SaveSlices",
    "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
    attrs=["T: list(type) >= 1"],
)


def write_tensors(
    writer: Any, names: Any, specs: Any, tensors: Sequence[Any], types: Sequence[DType]
) -> None:
    """Writes tensors, or the slices that ``specs`` says they are, as a checkpoint."""
    names, specs = _texts(names), _texts(specs)
    if not len(names) == len(specs) == len(tensors):
        raise InvalidArgumentError(
            None,
            None,
            f"There are {len(names)} names and {len(specs)} slices for {len(tensors)} tensors.",
        )
    with writer:
        for name, spec, tensor, dtype in zip(names, specs, tensors, types, strict=True):
            found = _parsed(spec)
            if found is None:
                writer.add(name, tensor, dtype.base_dtype)
            else:
                writer.add_slice(name, *found, tensor, dtype.base_dtype)


@save_v2_op.kernel
def _(xp, prefix, names, specs, tensors, *, dtypes):
    write_tensors(BundleWriter(_path(prefix)), names, specs, tensors, dtypes)
    return ()


@save_op.kernel
def _(xp, filename, names, tensors, *, T):  # noqa: N803 (TensorFlow's name)
    write_tensors(V1Writer(_path(filename)), names, [""] * len(tensors), tensors, T)
    return ()


@save_slices_op.kernel
def _(xp, filename, names, specs, tensors, *, T):  # noqa: N803 (TensorFlow's name)
    write_tensors(V1Writer(_path(filename)), names, specs, tensors, T)
    return ()


# Restoring --------------------------------------------------------------------------------------

_LARGE = 1 << 24
"""The bytes from which on several threads read a checkpoint."""
_MOST_THREADS = 4

restore_v2_op = _op(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string",
    "tensors: dtypes",
    attrs=["dtypes: list(type) >= 1"],
)
restore_op = _op(
    "Restore",
    "file_pattern: string, tensor_name: string",
    "tensor: dt",
    attrs=["dt: type", "preferred_shard: int = -1"],
)
restore_slice_op = _op(
    "RestoreSlice",
    "file_pattern: string, tensor_name: string, shape_and_slice: string",
    "tensor: dt",
    attrs=["dt: type", "preferred_shard: int = -1"],
)


def _spec_dims(spec: str) -> Any:
    """What the text of a slice says of the shape of what is restored."""
    found = _parsed(spec)
    if found is None:
        return None
    shape, part = found
    return tuple([bound.stop - bound.start for bound in part.bounds(shape)])


@restore_v2_op.shape
def _(prefix, names, specs, *, dtypes):
    known = constant_value(specs)
    if known is None:
        return [None] * len(dtypes)
    texts = _texts(known)
    if len(texts) != len(dtypes):
        raise ValueError(f"There are {len(texts)} slices for {len(dtypes)} types.")
    return [_spec_dims(text) for text in texts]


restore_op.shape(lambda pattern, name: None)


@restore_slice_op.shape
def _(pattern, name, spec):
    known = constant_value(spec)
    return None if known is None else _spec_dims(_text(known))


def _part(reader: Any, where: str, name: str, spec: str, dtype: DType) -> TensorSlice | None:
    """The slice that is wanted, checked; None for the whole tensor."""
    stored, whole = reader.type_and_shape(name)
    if stored is not dtype:
        raise InvalidArgumentError(
            None,
            None,
            f"{name!r} in the checkpoint {where!r} is of type {stored.name}, but {dtype.name} is "
            "wanted.",
        )
    found = _parsed(spec)
    if found is None:
        return None
    shape, part = found
    if shape != whole:
        raise InvalidArgumentError(
            None,
            None,
            f"{name!r} in the checkpoint {where!r} has the shape {whole}, but the slice {spec!r} "
            f"is one of a tensor of shape {shape}.",
        )
    return part


def _restored(reader: Any, where: str, name: str, spec: str, dtype: DType) -> np.ndarray:
    part = _part(reader, where, name, spec, dtype)
    return reader.tensor(name) if part is None else reader.slice(name, part)


def _restored_in_blocks(
    reader: Any, where: str, name: str, spec: str, dtype: DType
) -> np.ndarray | BlockValue:
    if not isinstance(reader, BundleReader) or dtype.np_dtype == object:
        return _restored(reader, where, name, spec, dtype)
    part = _part(reader, where, name, spec, dtype)
    _, whole = reader.type_and_shape(name)
    if part is None:
        part = TensorSlice(((0, None),) * len(whole))
    write = partial(reader.write_into, name, part)
    return WholeBlocks(sizes_of(part.bounds(whole)), dtype.np_dtype, write)


@restore_v2_op.kernel
def _(xp, prefix, names, specs, *, dtypes):
    return _restore_all(prefix, names, specs, dtypes=dtypes, blocks=[False] * len(dtypes))


def _restore_all(
    prefix: Any, names: Any, specs: Any, *, dtypes: Sequence[DType], blocks: Sequence[bool]
) -> list[Any]:
    """What is restored for each name; some of it to be read in blocks."""
    where = _path(prefix)
    names, specs = _texts(names), _texts(specs)
    if not len(names) == len(specs) == len(dtypes):
        raise InvalidArgumentError(
            None,
            None,
            f"There are {len(names)} names and {len(specs)} slices for {len(dtypes)} types.",
        )
    reader = open_checkpoint(where)
    calls = [
        partial(_restored_in_blocks if in_blocks else _restored, reader, where, name, spec, dtype)
        for name, spec, dtype, in_blocks in zip(names, specs, dtypes, blocks, strict=True)
    ]
    if len(calls) == 1 or not isinstance(reader, BundleReader) or reader.size < _LARGE:
        return [call() for call in calls]
    # Most of the time goes into memory that is touched for the first time: threads share that.
    with ThreadPoolExecutor(min(_MOST_THREADS, len(calls)), "runnel-restore") as threads:
        return list(threads.map(lambda call: call(), calls))


restore_v2_op.block_kernel = _restore_all


@restore_op.kernel
def _(xp, pattern, name, *, dt):
    where = _path(pattern)
    return _restored(open_checkpoint(where), where, _text(name), "", dt)


@restore_slice_op.kernel
def _(xp, pattern, name, spec, *, dt):
    where = _path(pattern)
    return _restored(open_checkpoint(where), where, _text(name), _text(spec), dt)


# Shards -----------------------------------------------------------------------------------------

merge_op = _op(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string",
    attrs=["delete_old_dirs: bool = true", "allow_missing_files: bool = false"],
)
sharded_filename_op = register_op(
    "ShardedFilename",
    inputs="basename: string, shard: int32, num_shards: int32",
    outputs="filename: string",
    host=True,
    differentiable=False,
)
sharded_filename_op.shape(scalar)
sharded_filespec_op = register_op(
    "ShardedFilespec",
    inputs="basename: string, num_shards: int32",
    outputs="filename: string",
    host=True,
    differentiable=False,
)
sharded_filespec_op.shape(scalar)


@merge_op.kernel
def _(xp, prefixes, destination, *, delete_old_dirs, allow_missing_files):
    sources = [permitted(source) for source in _texts(prefixes)]
    target = _path(destination)
    if allow_missing_files:
        sources = [source for source in sources if checkpoint_exists(source)]
    merge(sources, target)
    if delete_old_dirs:
        for folder in {os.path.dirname(source) for source in sources}:
            if folder != os.path.dirname(target) and not glob.glob(f"{glob.escape(folder)}/*"):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
    return ()


@sharded_filename_op.kernel
def _(xp, basename, shard, shards):
    return _string(f"{_text(basename)}-{int(shard):05d}-of-{int(shards):05d}")


@sharded_filespec_op.kernel
def _(xp, basename, shards):
    return _string(f"{_text(basename)}-?????-of-{int(shards):05d}")
