"""Running a C++ compiler.

The package's own build does so too, before anything of runnel can be imported: nothing is, here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

TIME_LIMIT = 180.0
LIBRARY_OPTIONS = ("-std=c++17", "-O3", "-fPIC", "-shared")


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


def compile_library(command: Sequence[str]) -> None:
    """Runs ``command``, which compiles.

    Raises:
        BuildError: it failed.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} did not run: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
        raise BuildError(f"{command[0]} failed: {lines[0].strip()[:300]}")
