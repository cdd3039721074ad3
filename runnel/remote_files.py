"""Files beyond this machine, wherever ``fsspec`` reaches."""

from __future__ import annotations

from typing import Any

from runnel.graph import errors


def remote_of(path: str) -> Any:
    """The file system of a path with a protocol; None for one of this machine."""
    protocol, mark, _ = path.partition("://")
    if not mark or protocol == "file":
        return None
    try:
        import fsspec
    except ImportError:
        raise errors.UnimplementedError(
            None, None, f"{path!r}: install the package fsspec to use {protocol}:// paths"
        ) from None
    return fsspec.filesystem(protocol)


def matches(remote: Any, pattern: str) -> list[str]:
    """The paths that match ``pattern``, with its protocol."""
    bare = remote._strip_protocol(pattern).lstrip("/")
    protocol = pattern.removesuffix(bare)
    return sorted(protocol + found.lstrip("/") for found in remote.glob(pattern))


def children(remote: Any, folder: str) -> list[tuple[str, bool]]:
    """The names in a folder, and whether each is a folder too."""
    if not remote.isdir(folder):
        raise FileNotFoundError(f"{folder} is no folder")
    own = remote._strip_protocol(folder).rstrip("/")
    found = {}
    for known in remote.ls(folder, detail=True):
        path = known["name"].rstrip("/")
        if path != own:  # some stores list a folder's own marker in it
            found[path.rsplit("/", 1)[-1]] = known["type"] == "directory"
    return sorted(found.items())


def changed_at(remote: Any, path: str) -> int:
    """When a file was changed, in nanoseconds; 0 where the store does not tell."""
    try:
        return round(remote.modified(path).timestamp() * 1e9)
    except (NotImplementedError, AttributeError, KeyError):
        return 0
