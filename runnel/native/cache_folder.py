"""The folder in which runnel keeps what it has compiled, for later processes.

``$RUNNEL_CACHE_DIR``, or ``runnel`` in ``$XDG_CACHE_HOME`` (``~/.cache``). Only the user may be
able to write there, for what lies there is loaded and run.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RUNNEL_CACHE_DIR"


class UnusableFolder(Exception):
    """Nothing can be kept."""


def cache_folder() -> Path:
    """Where it is; it is made where it is missing.

    Raises:
        UnusableFolder: it cannot be made, or someone else could write to it.
    """
    folder = cache_path()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UnusableFolder(f"{folder} cannot be made: {error}") from error
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise UnusableFolder(f"{folder} could be written by others: make it the user's alone")
    return folder


def cache_path() -> Path:
    """Its path, whether it is there or not."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home, "runnel")
