"""The libraries of native code: what they are made of, and their names.

One has the kernels that XLA calls; the other reads input and draws random bits, and needs nothing
but a compiler. The package carries them where they could be built when the package was
(``setup.py``); elsewhere they are built on the user's machine. Nothing of runnel is imported here,
for the first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = [FOLDER / name for name in ("convolution.cpp", "channel_sums.cpp")]
INPUT_SOURCES = [
    FOLDER / name
    for name in (
        "record_scan.cpp",
        "example_parse.cpp",
        "text_values.cpp",
        "string_hashes.cpp",
        "bilinear_resize.cpp",
        "philox.cpp",
        "row_reduction.cpp",
    )
]


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
    return f"kernels-{_digest(SOURCES)}-{interface}.so"


def packaged_input(folder: Path) -> list[Path]:
    """The library in ``folder`` that reads input, if it was made of today's sources."""
    return sorted(folder.glob(packaged_input_name()))


def packaged_input_name() -> str:
    """The name of the library in the package that reads input.

    With a dot in it nobody takes it for a module of Python.
    """
    return f"input.{_digest(INPUT_SOURCES)}.so"


def _digest(sources: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in (*sources, *sorted(FOLDER.glob("*.h"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
