"""The library of convolutions by oneDNN.

On Linux on x86-64 oneDNN is installed with runnel, and the package carries the library where there
was a C++ compiler when it was built. Where it carries none that fits, and oneDNN's headers (the
extra ``onednn``) and a compiler are here, the library is compiled when the first step with a
convolution is, which takes some seconds, once for a user and a version. With it come the sums of
batch normalisation, which need no oneDNN but are of use in the same networks. ``RUNNEL_ONEDNN=0``
turns it off; ``RUNNEL_ONEDNN=/opt/onednn`` names another installation, a folder with ``include``
and ``lib`` or ``lib64``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

from runnel.native import kernels
from runnel.native.build import build_library
from runnel.native.compiling import BuildError, compiler

VARIABLE = "RUNNEL_ONEDNN"
CONVOLUTIONS = (
    "runnel_conv_forward",
    "runnel_conv_filter_gradient",
    "runnel_conv_input_gradient",
)
CHANNEL_SUMS = ("runnel_channel_moments", "runnel_channel_gradients")
_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class Installation:
    """Where oneDNN's library is, and its headers, if they are here."""

    include: Path | None
    library: Path
    version: str


def installation() -> Installation | None:
    """The oneDNN to use: the environment's, or the packages'; None where there is none."""
    setting = os.environ.get(VARIABLE, "")
    if setting == "0" or not sys.platform.startswith("linux"):
        return None
    if setting not in ("", "1"):
        return _in_folder(Path(setting))
    from importlib import metadata

    try:
        package = metadata.distribution("onednn-cpu-gomp")
    except metadata.PackageNotFoundError:
        return None
    for file in package.files or ():
        if file.name == "libdnnl.so":
            library = Path(str(package.locate_file(file))).resolve()
            return _in_folder(library.parent.parent) or Installation(None, library, "")
    return None


def _in_folder(folder: Path) -> Installation | None:
    include = folder / "include"
    headers = include / "oneapi" / "dnnl"
    if not (headers / "dnnl.hpp").exists():
        return None
    for libraries in ("lib", "lib64"):
        library = folder / libraries / "libdnnl.so"
        if library.exists():
            return Installation(include, library, _version(headers / "dnnl_version.h"))
    return None


def _version(header: Path) -> str:
    """What the header defines, such as "3.2.0"; empty where there is none."""
    if not header.exists():
        return ""
    numbers = re.findall(r"#define DNNL_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", header.read_text())
    return ".".join(numbers)


def load() -> ctypes.CDLL | None:
    """The library, its functions registered with XLA; None where it cannot be had.

    Where oneDNN is installed and the library cannot be built, or the environment names a folder
    without oneDNN, a warning says so, once.
    """
    with _loading:
        return _load()


def circumstances() -> list[str]:
    """What decides whether there is a library, and which: others have :func:`load` give another."""
    found = installation()
    facts = [os.environ.get(VARIABLE, ""), str(found)]
    if found is not None:
        import jax

        facts.append(str(_packaged(Path(jax.ffi.include_dir()))))
        try:
            facts.append(compiler() if found.include else "")
        except BuildError:
            facts.append("")
    return facts


@functools.cache
def _load() -> ctypes.CDLL | None:
    found = installation()
    if found is None:
        setting = os.environ.get(VARIABLE, "")
        if setting not in ("", "0", "1") and sys.platform.startswith("linux"):
            warnings.warn(
                f"{VARIABLE}={setting}: no oneDNN there (include/oneapi/dnnl/dnnl.hpp, "
                "lib/libdnnl.so)",
                RuntimeWarning,
                stacklevel=2,
            )
        return None
    import jax

    include = Path(jax.ffi.include_dir())
    try:
        path = _packaged(include) or _built(found, include)
        if path is None:
            return None
        ctypes.CDLL(str(found.library))  # the library asks for it by its name alone
        library = ctypes.CDLL(str(path))
    except (BuildError, OSError) as error:
        warnings.warn(
            f"oneDNN is installed, but cannot be used: {error}. runnel computes convolutions "
            f"without it; {VARIABLE}=0 turns this warning off.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    for name in (*CONVOLUTIONS, *CHANNEL_SUMS):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    library.runnel_conv_has_kernel.restype = ctypes.c_int
    return library


def _packaged(jax_include: Path) -> Path | None:
    """The library that the package carries, if it fits this JAX and no other oneDNN is named."""
    if os.environ.get(VARIABLE, "") not in ("", "1"):
        return None
    found = kernels.packaged(kernels.FOLDER, kernels.interface_version(jax_include))
    return found[0] if found else None


def _built(found: Installation, jax_include: Path) -> Path | None:
    """The library, built here; None without headers."""
    if found.include is None:
        return None
    options = kernels.options(jax_include, found.include, found.library.parent)
    from importlib.metadata import version

    versions = [version("jaxlib"), found.version]
    return build_library("kernels", kernels.SOURCES, options, versions)


def explanation() -> str:
    """One sentence on what convolutions on this CPU are computed by, and why."""
    if load() is not None:
        return "Convolutions on this CPU are computed by oneDNN."
    if os.environ.get(VARIABLE) == "0":
        why = f"{VARIABLE}=0"
    elif not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        why = "oneDNN is used on Linux on x86-64"
    elif installation() is None:
        why = "the package onednn-cpu-gomp is not installed"
    elif kernels.packaged(kernels.FOLDER):
        why = "runnel's library was compiled for another version of jaxlib: install runnel again"
    else:
        why = "there was no C++ compiler when runnel was installed (on Debian: apt-get install g++)"
    return f"Convolutions on this CPU are computed by runnel's own formulations: {why}."
