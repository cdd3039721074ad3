"""``file_io``: ``tf.gfile`` under the names that it has inside TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from runnel import gfile
from runnel.gfile import (
    FileStatistics,
    copy,
    rename,
    stat,
    walk,
)
from runnel.gfile import exists as file_exists
from runnel.gfile import isdir as is_directory
from runnel.gfile import listdir as list_directory
from runnel.gfile import makedirs as recursive_create_dir
from runnel.gfile import mkdir as create_dir
from runnel.gfile import remove as delete_file
from runnel.gfile import rmtree as delete_recursively

__all__ = [
    "FileIO",
    "FileStatistics",
    "atomic_write_string_to_file",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]


class FileIO(gfile.GFile):
    """A file; a program gives the mode."""

    def __init__(self, name: Any, mode: str) -> None:
        super().__init__(name, mode)


def get_matching_files(filename: Any) -> list[str]:
    """The files that match one pattern, or any of several."""
    if isinstance(filename, str | bytes | os.PathLike) or not isinstance(filename, Iterable):
        return gfile.glob(filename)
    return [name for pattern in filename for name in gfile.glob(pattern)]


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """What is in a file."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: str | bytes) -> None:
    """Writes a file."""
    with FileIO(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(
    filename: Any, contents: str | bytes, overwrite: bool = True
) -> None:
    """Writes a file that others see whole, or not at all."""
    beside = f"{os.fspath(filename)}.tmp{os.getpid()}"
    write_string_to_file(beside, contents)
    try:
        rename(beside, filename, overwrite)
    except BaseException:
        delete_file(beside)
        raise
