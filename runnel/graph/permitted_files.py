"""Which files graphs may touch: all, or only those in a server's folder."""

from __future__ import annotations

import os

from runnel.graph.errors import PermissionDeniedError

VARIABLE = "RUNNEL_FILES"
"""Names the folder, in the environment of a process that runs the graphs of others."""


def permitted(path: str) -> str:
    """``path``, as it is to be opened; an error when this process may not touch it.

    Where a folder is set, relative paths are in it, and no path may leave it, by ``..``, a symbolic
    link or another file system.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return path
    root = os.path.realpath(folder)
    inside = os.path.realpath(os.path.join(root, path.removeprefix("file://")))
    if "://" in path.removeprefix("file://") or os.path.commonpath([root, inside]) != root:
        raise PermissionDeniedError(
            None,
            None,
            f"{path!r} is outside of {folder!r}, the only folder whose files graphs may touch in "
            f"this process ({VARIABLE}, runnel server --files)",
        )
    return inside
