"""``tf.resource_loader``: files that lie beside a program."""

from __future__ import annotations

import inspect
import os
import sys

from runnel.gfile import open_binary

__all__ = [
    "get_data_files_path",
    "get_path_to_datafile",
    "get_root_dir_with_all_resources",
    "load_resource",
    "readahead_file_path",
]


def _folder_of_caller(depth: int = 2) -> str:
    return os.path.dirname(inspect.getfile(sys._getframe(depth)))


def get_data_files_path() -> str:
    """The folder of the file that calls."""
    return _folder_of_caller()


def get_path_to_datafile(path: str) -> str:
    """``path`` in the folder of the file that calls.

    Example:
        >>> labels = tf.resource_loader.get_path_to_datafile("labels.txt")
    """
    return os.path.join(_folder_of_caller(), path)


def get_root_dir_with_all_resources() -> str:
    """The folder of the file that calls (there are no packages of Bazel's)."""
    return _folder_of_caller()


def load_resource(path: str) -> bytes:
    """The bytes of the file at ``path`` in the folder of runnel's package."""
    with open_binary(os.path.join(os.path.dirname(__file__), path)) as file:
        data: bytes = file.read()
        return data


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """``path`` itself."""
    return path


def __dir__() -> list[str]:
    return __all__
