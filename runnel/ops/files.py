"""Whole files, read, written and found by operations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runnel import gfile
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op

# They look at the world: what a file holds may be another thing in the next step.
_HOST: dict[str, Any] = {
    "host": True,
    "stateful": True,
    "holds_thread": True,
    "differentiable": False,
}

read_file_op = register_op("ReadFile", "filename: string", "contents: string", **_HOST)
write_file_op = register_op("WriteFile", "filename: string, contents: string", **_HOST)
matching_files_op = register_op("MatchingFiles", "pattern: string", "filenames: string", **_HOST)


@read_file_op.shape
def _(filename):
    return ()


@matching_files_op.shape
def _(pattern):
    if pattern.dims is not None and len(pattern.dims) > 1:
        raise ValueError(f"pattern must be a string or a list of them, not {pattern.shape}")
    return (None,)


@read_file_op.kernel
def _(xp, filename):
    out = np.empty((), object)
    with gfile.open_binary(np.asarray(filename).item()) as file:
        out[()] = file.read()
    return out


@write_file_op.kernel
def _(xp, filename, contents):
    path = os.fsdecode(np.asarray(filename).item())
    folder = os.path.dirname(path)
    if folder:
        gfile.makedirs(folder)
    with gfile.open_binary(path, "wb") as file:
        file.write(np.asarray(contents).item())
    return ()


@matching_files_op.kernel
def _(xp, pattern):
    wanted = [os.fsdecode(text) for text in np.asarray(pattern, object).reshape(-1)]
    found = sorted({os.fsencode(path) for path in gfile.glob(wanted)})
    out = np.empty(len(found), object)
    out[:] = found
    return out


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """All bytes of a file.

    Example:
        >>> tf.io.read_file("notes.txt")
    """
    return read_file_op(filename, name=name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes ``contents`` to a file, whose folders are made if they are not there."""
    return write_file_op(filename, contents, name=name)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match one of the patterns, in order.

    Example:
        >>> tf.io.matching_files("/data/train-*.tfrecord")
    """
    return matching_files_op(pattern, name=name)
