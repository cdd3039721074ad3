"""The library of convolutions by oneDNN, where oneDNN and a C++ compiler are installed.

The extra ``onednn`` brings it (``pip install '.[onednn]'`` from a checkout). The library is
compiled when the first step with a convolution is, which takes some seconds, once for a user and a
version. With it come the sums of batch normalisation, which need no oneDNN but are of use in the
same networks. ``RUNNEL_ONEDNN=0`` turns it off; ``RUNNEL_ONEDNN=/opt/onednn`` names another
installation, a folder with ``include`` and ``lib`` or ``lib64``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import threading
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from runnel.native.build import BuildError, build_library

VARIABLE = "RUNNEL_ONEDNN"
CONVOLUTIONS = (
    "runnel_conv_forward",
    "runnel_conv_filter_gradient",
    "runnel_conv_input_gradient",
)
CHANNEL_SUMS = ("runnel_channel_moments", "runnel_channel_gradients")
_SOURCES = [Path(__file__).with_name(name) for name in ("convolution.cpp", "channel_sums.cpp")]
_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class Installation:
    """Where oneDNN's headers and its library are."""

    include: Path
    library: Path
    version: str


def installation() -> Installation | None:
    """The oneDNN to use: the environment's, or the packages'; None where there is none."""
    setting = os.environ.get(VARIABLE, "")
    if setting == "0" or not sys.platform.startswith("linux"):
        return None
    if setting not in ("", "1"):
        return _in_folder(Path(setting))
    try:
        package = metadata.distribution("onednn-cpu-gomp")
    except metadata.PackageNotFoundError:
        return None
    for file in package.files or ():
        if file.name == "libdnnl.so":
            library = Path(str(package.locate_file(file))).resolve()
            return _in_folder(library.parent.parent)
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

    folder = str(found.library.parent)
    options = [
        *("-fopenmp", f"-I{jax.ffi.include_dir()}", f"-I{found.include}"),
        *(f"-L{folder}", "-ldnnl", f"-Wl,-rpath,{folder}"),
    ]
    try:
        versions = [metadata.version("jaxlib"), found.version]
        library = ctypes.CDLL(str(build_library("kernels", _SOURCES, options, versions)))
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
