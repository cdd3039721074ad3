"""The library that reads input: records out of files, features out of examples, images resized.

It reads CSV and hashes strings, too, and for interpreted steps it draws random bits and combines
rows. The package carries it where there was a C++ compiler when it was built; elsewhere it is
compiled when the first record or example is read, which takes a second or two, once for a user and
a version. Without a compiler, or with ``RUNNEL_NATIVE_INPUT=0``, the same is done in Python.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from typing import Any

from runnel.native import kernels
from runnel.native.build import build_library
from runnel.native.compiling import BuildError

VARIABLE = "RUNNEL_NATIVE_INPUT"
_SIGNATURES = {
    "runnel_crc32c": (ctypes.c_uint32, "bn"),
    "runnel_crc32c_by_tables": (ctypes.c_uint32, "bn"),
    "runnel_scan_records": (ctypes.c_int64, "bnnna"),
    "runnel_find_features": (None, "banbanaaaaaa"),
    "runnel_read_values": (None, "baaanta"),
    "runnel_resize_bilinear": (None, "annnnnaaanaaanna"),
    "runnel_philox": (None, "bana"),
    "runnel_combine_rows": (None, "ttaaaannnnaa"),
    "runnel_read_numbers": (ctypes.c_int64, "banna"),
    "runnel_read_csv": (ctypes.c_int64, "bannnbnannaa"),
    "runnel_hash_strings": (None, "bannba"),
}
"""What each function gives and takes: bytes, a number, the address of an array, a tag."""
_KINDS = {"b": ctypes.c_char_p, "n": ctypes.c_int64, "a": ctypes.c_void_p, "t": ctypes.c_uint8}
_loading = threading.Lock()


def input_library() -> ctypes.CDLL | None:
    """The library; None where it cannot be had, or is turned off."""
    if os.environ.get(VARIABLE) == "0":
        return None
    with _loading:
        return _load()[0]


def carried_library() -> ctypes.CDLL | None:
    """The library if the package carries it, for what had better not wait for a compiler."""
    return input_library() if _is_carried() else None


@functools.cache
def _is_carried() -> bool:
    return bool(kernels.packaged_input(kernels.FOLDER))


@functools.cache
def _load() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and why there is none."""
    if sys.byteorder != "little":
        return None, "it reads numbers as they stand in files, on little-endian processors"
    found = kernels.packaged_input(kernels.FOLDER)
    try:
        path = found[0] if found else build_library("input", kernels.INPUT_SOURCES, [], [])
        library = ctypes.CDLL(str(path))
    except (BuildError, OSError) as error:
        return None, str(error)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = [_KINDS[kind] for kind in arguments]
    return library, ""


def address(array: Any) -> int:
    """Where the elements of an array of NumPy are, which has some."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def explanation() -> str:
    """One sentence on what reads input, and why."""
    if input_library() is not None:
        return "Records and examples are read by native code."
    why = f"{VARIABLE}=0" if os.environ.get(VARIABLE) == "0" else _load()[1]
    return f"Records and examples are read by Python code: {why}."
