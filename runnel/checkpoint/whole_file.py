"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def appearing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write that has its name when the block has ended, and is gone if that failed."""
    temporary = f"{path}.tempstate{secrets.randbits(63)}"
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as file:
        file.write(content)
