"""Compiling C++ sources into a shared library, once for each content.

Libraries are kept in runnel's cache folder, under a name that tells everything that went into them:
another source, compiler, header or option has another name, and nothing is ever stale.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from runnel.native.cache_folder import UnusableFolder, cache_folder, cache_path
from runnel.native.compiling import LIBRARY_OPTIONS, BuildError, compile_library, compiler


def build_library(
    name: str, sources: Sequence[Path], options: Sequence[str], versions: Sequence[str]
) -> Path:
    """The library that ``sources`` make together, compiled now unless they were before.

    They may include headers (``*.h``) of their own folders. ``versions`` names what else the
    result depends on: the versions of other headers.

    Raises:
        BuildError: there is no compiler, it failed, or there is no place for the library.
    """
    command = [compiler(), *LIBRARY_OPTIONS, *map(str, sources), *options]
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
        compile_library([*command, "-o", made])
        os.replace(made, library)
    finally:
        Path(made).unlink(missing_ok=True)
    return library


def kept_libraries() -> list[Path]:
    """The libraries that have been built, and were not removed since."""
    return sorted(cache_path().glob("*.so"))
