"""``tf.gfile`` and ``tf.io.gfile``: files on this machine, and wherever ``fsspec`` reaches.

A path with a protocol (``s3://...``) needs the package ``fsspec``. Errors are TensorFlow's:
``NotFoundError``, ``AlreadyExistsError``, ``FailedPreconditionError``, ``PermissionDeniedError``.
"""

from __future__ import annotations

import contextlib
import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runnel.graph import errors
from runnel.graph.permitted_files import permitted
from runnel.remote_files import changed_at, children, matches, remote_of


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = errors.exception_type_from_os_error(error)
        raise kind(None, None, f"{path}; {error.strerror or error}") from error


def _text(path: Any) -> str:
    return permitted(os.fsdecode(os.fspath(path)))


def _local(path: str) -> str:
    return path.removeprefix("file://")


def open_binary(path: Any, mode: str = "rb") -> Any:
    """The file of ``path``, opened for bytes; errors are TensorFlow's."""
    name = _text(path)
    with _translated(name):
        remote = remote_of(name)
        return open(_local(name), mode) if remote is None else remote.open(name, mode)


class GFile:
    """A file, opened when it is first read or written.

    Example:
        >>> with tf.gfile.GFile("/tmp/words", "w") as file:
        ...     file.write("one")
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name = _text(name)
        self._mode = mode
        if mode.replace("b", "") not in ("r", "w", "a", "r+", "w+", "a+"):
            raise errors.InvalidArgumentError(None, None, f"{mode!r} is not a mode of a file")
        self._file: Any = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            mode = self._mode if "b" in self._mode else f"{self._mode}b"
            self._file = open_binary(self._name, mode)
        return self._file

    def _require(self, allowed: str, what: str) -> Any:
        if not any(mark in self._mode for mark in allowed):
            raise errors.PermissionDeniedError(
                None, None, f"File isn't open for {what}: {self._name} has the mode {self._mode!r}"
            )
        return self._opened()

    def _decoded(self, content: bytes) -> Any:
        return content if "b" in self._mode else content.decode()

    def size(self) -> int:
        """How many bytes the file has."""
        return stat(self._name).length

    def write(self, file_content: str | bytes) -> None:
        """Writes text or bytes."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        with _translated(self._name):
            self._require("wa+", "writing").write(content)

    def read(self, n: int = -1) -> Any:
        """The next ``n`` bytes, or all; as text unless the mode has a "b"."""
        return self._decoded(self._require("r+", "reading").read(n))

    def readline(self) -> Any:
        """The next line, with its end."""
        return self._decoded(self._require("r+", "reading").readline())

    def readlines(self) -> list[Any]:
        """All lines that follow."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        while line := self.readline():
            yield line

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to a place in the file."""
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        self._opened().seek(place, whence)

    def tell(self) -> int:
        """Where in the file it is."""
        return self._opened().tell()

    def seekable(self) -> bool:
        """True: there is a place in the file."""
        return True

    def flush(self) -> None:
        """Has what was written be in the file."""
        if self._file is not None and not self._file.closed:
            with _translated(self._name):
                self._file.flush()

    def close(self) -> None:
        """Closes the file; one that was opened to be written is there even if nothing was."""
        if self._file is None and "w" in self._mode:
            self._opened()
        if self._file is not None:
            with _translated(self._name):
                self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


FastGFile = Open = GFile


@dataclass(frozen=True)
class FileStatistics:
    """How long a file is, when it was changed (in nanoseconds), and whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


# tf.io.gfile ------------------------------------------------------------------------------------


def exists(path: Any) -> bool:
    """True when there is such a file or folder."""
    name = _text(path)
    remote = remote_of(name)
    return remote.exists(name) if remote is not None else os.path.exists(_local(name))


def isdir(path: Any) -> bool:
    """True when there is such a folder."""
    name = _text(path)
    remote = remote_of(name)
    return remote.isdir(name) if remote is not None else os.path.isdir(_local(name))


def stat(path: Any) -> FileStatistics:
    """What is known of a file."""
    name = _text(path)
    with _translated(name):
        remote = remote_of(name)
        if remote is not None:
            known = remote.info(name)
            if known["type"] == "directory":
                return FileStatistics(0, 0, True)
            return FileStatistics(known.get("size") or 0, changed_at(remote, name), False)
        found = os.stat(_local(name))
        return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(_local(name)))


def _act(path: Any, here: Callable[[str], Any], there: Callable[[Any, str], Any]) -> Any:
    name = _text(path)
    with _translated(name):
        remote = remote_of(name)
        return here(_local(name)) if remote is None else there(remote, name)


def remove(path: Any) -> None:
    """Removes a file."""
    _act(path, os.remove, lambda fs, name: fs.rm_file(name))


def mkdir(path: Any) -> None:
    """Makes a folder in one that is there; one that is there already is no error."""
    if not isdir(path):
        _act(path, os.mkdir, lambda fs, name: fs.mkdir(name, create_parents=False))


def makedirs(path: Any) -> None:
    """Makes a folder, and those around it; one that is there is no error."""
    _act(
        path,
        lambda name: os.makedirs(name, exist_ok=True),
        lambda fs, name: fs.makedirs(name, exist_ok=True),
    )


def rmtree(path: Any) -> None:
    """Removes a folder and everything in it."""
    _act(path, shutil.rmtree, lambda fs, name: fs.rm(name, recursive=True))


def listdir(path: Any) -> list[str]:
    """The names in a folder."""
    return _act(path, os.listdir, lambda fs, name: [each for each, _ in children(fs, name)])


def glob(pattern: Any) -> list[str]:
    """The files that match a pattern, or one of several."""
    if isinstance(pattern, list | tuple):
        return [found for each in pattern for found in glob(each)]
    return _act(pattern, lambda name: sorted(_glob.glob(name)), matches)


def _require_room(target: str, overwrite: bool) -> None:
    if exists(target) and not overwrite:
        raise errors.AlreadyExistsError(None, None, f"{target}; file already exists")


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file; one that is there is replaced only if told so."""
    source, target = _text(src), _text(dst)
    _require_room(target, overwrite)
    if remote_of(source) is None and remote_of(target) is None:
        with _translated(source):
            shutil.copyfile(_local(source), _local(target))
        return
    with GFile(source, "rb") as reader, GFile(target, "wb") as writer:
        while content := reader.read(1 << 20):
            writer.write(content)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Gives a file or folder another name; what has that is replaced only if told so.

    Between this machine and another place it is copied, and removed when all of it is there.
    """
    source, target = _text(src), _text(dst)
    _require_room(target, overwrite)
    here, there = remote_of(source), remote_of(target)
    with _translated(source):
        if here is None and there is None:
            os.replace(_local(source), _local(target))
        elif here is there:  # fsspec has one object for each store
            here.mv(source, target, recursive=True)
        elif isdir(source):
            _copy_folder(source, target)
            rmtree(source)
        else:
            copy(source, target, overwrite=True)
            remove(source)


def _copy_folder(source: str, target: str) -> None:
    for folder, _, files in walk(source, onerror=_raise):
        inside = target + folder.removeprefix(source)
        makedirs(inside)
        for name in files:
            copy(f"{folder}/{name}", f"{inside}/{name}", overwrite=True)


def _raise(error: Exception) -> None:
    raise error


def walk(
    top: Any, topdown: bool = True, onerror: Any = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Folders with their folders and files, from ``top`` on; with ``topdown`` the outer ones first.

    Then a folder that is taken out of the list of folders is left out. ``onerror`` is called with
    the error of a folder that cannot be listed.
    """
    folder = _text(top)
    try:
        listed: list[tuple[str, bool]] = _act(folder, _children, children)
    except errors.OpError as error:
        if onerror is not None:
            onerror(error)
        return
    folders = [name for name, is_folder in listed if is_folder]
    files = [name for name, is_folder in listed if not is_folder]
    if topdown:
        yield folder, folders, files
    for name in folders:
        yield from walk(os.path.join(folder, name), topdown, onerror)
    if not topdown:
        yield folder, folders, files


def _children(folder: str) -> list[tuple[str, bool]]:
    with os.scandir(folder) as found:
        return sorted((each.name, each.is_dir()) for each in found)


# tf.gfile ---------------------------------------------------------------------------------------


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:  # noqa: N802
    """:func:`copy` under its older name."""
    copy(oldpath, newpath, overwrite)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:  # noqa: N802
    """:func:`rename` under its older name."""
    rename(oldname, newname, overwrite)


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:  # noqa: N802
    """:func:`walk` under its older name."""
    return walk(top, topdown=in_order)


Exists = exists
IsDirectory = isdir
Stat = stat
Remove = remove
MkDir = mkdir
MakeDirs = makedirs
DeleteRecursively = rmtree
ListDirectory = listdir
Glob = glob

__all__ = [
    *("Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory"),
    *("ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk"),
    *("copy", "exists", "glob", "isdir", "listdir", "makedirs", "mkdir", "remove", "rename"),
    *("rmtree", "stat", "walk"),
]


def __dir__() -> list[str]:
    return __all__
