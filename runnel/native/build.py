"""Compiling C++ sources into a shared library, once for each content.

Libraries are kept in runnel's cache folder, under a name that tells everything that went into them:
another source, compiler, header or option has another name, and nothing is ever stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from runnel.native.cache_folder import UnusableFolder, cache_folder, cache_path

TIME_LIMIT = 180.0


class BuildError(Exception):
    """A library cannot be built here."""


def compiler() -> str:
    """The C++ compiler: ``$CXX``, or the first of the usual names.

    Raises:
        BuildError: there is none.
    """
    for name in (os.environ.get("CXX"), "g++", "c++"):
        found = shutil.which(name) if name else None
        if found is not None:
            return found
    raise BuildError("there is no C++ compiler (g++, or what CXX names)")


def build_library(
    name: str, sources: Sequence[Path], options: Sequence[str], versions: Sequence[str]
) -> Path:
    """The library that ``sources`` make together, compiled now unless they were before.

    They may include headers (``*.h``) of their own folders. ``versions`` names what else the
    result depends on: the versions of other headers.

    Raises:
        BuildError: there is no compiler, it failed, or there is no place for the library.
    """
    command = [compiler(), "-std=c++17", "-O3", "-fPIC", "-shared", *map(str, sources), *options]
    headers = sorted({header for source in sources for header in source.parent.glob("*.h")})
    content = [path.read_bytes() for path in (*sources, *headers)]
    # What a link leads to tells compilers apart; the link itself is run, for its name can matter.
    names = (os.path.realpath(command[0]), *command, *versions)
    content += [text.encode() for text in names]
    digest = hashlib.sha256(b"\0".join(content))
    try:
        folder = cache_folder()
    except UnusableFolder as error:
        raise BuildError(str(error)) from error
    library = folder / f"{name}-{digest.hexdigest()[:32]}.so"
    if library.exists():
        return library
    # Several processes may build at once: each writes a file of its own and puts it in place.
    try:
        handle, made = tempfile.mkstemp(".so", prefix=name, dir=library.parent)
    except OSError as error:
        raise BuildError(f"{library.parent} cannot be written: {error}") from error
    os.close(handle)
    try:
        _compile([*command, "-o", made])
        os.replace(made, library)
    finally:
        Path(made).unlink(missing_ok=True)
    return library


def kept_libraries() -> list[Path]:
    """The libraries that have been built, and were not removed since."""
    return sorted(cache_path().glob("*.so"))


def _compile(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} did not run: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
        raise BuildError(f"{command[0]} failed: {lines[0].strip()[:300]}")
