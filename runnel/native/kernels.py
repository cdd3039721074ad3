"""The library of kernels: what it is made of, and its name.

The package carries it where it could be built when the package was (``setup.py``); elsewhere it is
built on the user's machine. Nothing of runnel is imported here, for the first.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = [FOLDER / name for name in ("convolution.cpp", "channel_sums.cpp")]


def options(jax_include: Path, onednn_include: Path, libraries: Path) -> list[str]:
    """What a compiler is told beside the sources; ``libraries`` is the folder with oneDNN's."""
    return [
        *("-fopenmp", f"-I{jax_include}", f"-I{onednn_include}"),
        *(f"-L{libraries}", "-ldnnl"),
    ]


def interface_version(jax_include: Path) -> str:
    """The version of XLA's interface for such libraries, such as "0.3"; empty if it is unknown."""
    header = jax_include / "xla" / "ffi" / "api" / "c_api.h"
    if not header.exists():
        return ""
    numbers = re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR)\s+(\d+)", header.read_text())
    return ".".join(numbers)


def packaged(folder: Path, interface: str = "*") -> list[Path]:
    """The libraries in ``folder`` that were made of today's sources, for an interface or any."""
    return sorted(folder.glob(packaged_name(interface)))


def packaged_name(interface: str) -> str:
    """The name of the library in the package: another source or interface has another."""
    digest = hashlib.sha256()
    for path in (*SOURCES, *sorted(FOLDER.glob("*.h"))):
        digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}-{interface}.so"
