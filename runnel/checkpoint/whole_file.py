"""Files that appear complete or not at all, and stay when the power fails.

A file's bytes are on the disk before it has its name; whoever has given it one asks
:func:`sync_folder` to have the name there too, before anything relies on it or an older file goes.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from runnel.checkpoint.leftovers import temporary_name

logger = logging.getLogger("runnel")

_FOLDERS_WITHOUT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})
"""What a file system says, some on a network do, that cannot sync folders."""


@contextlib.contextmanager
def appearing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write that has its name when the block has ended, and is gone if that failed."""
    temporary = temporary_name(str(path))
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        remove_files([temporary])
        raise


def sync_folder(folder: str | Path) -> None:
    """Returns when the names of the files in a folder are on the disk."""
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY)
    except PermissionError:  # Windows, or a folder whose files can be named but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _FOLDERS_WITHOUT_SYNC:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: str | Path) -> None:
    """Makes a folder and those around it, and has the new ones on the disk."""
    path = Path(folder)
    new = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in new:
        sync_folder(each.parent)


def begin_to_sync(file: BinaryIO, start: int, end: int) -> None:
    """Has the system write some bytes of a file to the disk meanwhile.

    The end of :func:`appearing` then has little left to wait for.
    """
    if hasattr(os, "posix_fadvise"):
        # Linux begins to write what it is asked to forget, and waits for none of it.
        os.posix_fadvise(file.fileno(), start, end - start, os.POSIX_FADV_DONTNEED)


def remove_files(paths: Iterable[str | Path]) -> None:
    """Removes files of no more use; one that cannot be removed takes room, and is no error."""
    for path in paths:
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            logger.warning("%s cannot be removed: %s", path, error)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file, and the folder that it is in; both are on the disk when it returns."""
    make_folder(path.parent)
    with appearing(path) as file:
        file.write(content)
    sync_folder(path.parent)


def copy_whole(source: str | Path, target: Path) -> None:
    """Copies a file as :func:`write_whole` writes one."""
    make_folder(target.parent)
    with open(source, "rb") as original, appearing(target) as file:
        shutil.copyfileobj(original, file)
    sync_folder(target.parent)
