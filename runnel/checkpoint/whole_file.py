"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

logger = logging.getLogger("runnel")


@contextlib.contextmanager
def appearing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write that has its name when the block has ended, and is gone if that failed."""
    temporary = f"{path}.tempstate{secrets.randbits(63)}"
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        remove_files([temporary])
        raise


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
    """Writes a file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as file:
        file.write(content)
