"""A question that a compiled program asks the host, through XLA's foreign function interface.

A callback of JAX makes the whole program run on the thread that calls it, which cannot start or
release anything meanwhile; and an interrupt inside it loses the buffers that the program updates in
place. XLA calls a foreign function on the thread that runs the program, which takes a few
microseconds. The structures are those of ``xla/ffi/api/c_api.h``, as far as needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, ClassVar

import numpy as np

_METADATA = 1
QUESTION = "runnel_question"


class _Structure(ctypes.Structure):
    _fields_: ClassVar[Any] = [("struct_size", c_size_t), ("extension", c_void_p)]


class _ApiVersion(_Structure):
    _fields_: ClassVar[Any] = [("major", c_int), ("minor", c_int)]


class _Api(_Structure):
    _fields_: ClassVar[Any] = [("version", _ApiVersion)]


class _Metadata(ctypes.Structure):
    _fields_: ClassVar[Any] = [("struct_size", c_size_t), ("version", _ApiVersion)]


class _Extension(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        *(("struct_size", c_size_t), ("type", c_int), ("next", c_void_p)),
        ("metadata", POINTER(_Metadata)),
    ]


class _Buffer(_Structure):
    _fields_: ClassVar[Any] = [("dtype", c_int), ("data", POINTER(c_int32))]


class _Buffers(_Structure):
    _fields_: ClassVar[Any] = [
        *(("size", c_int64), ("types", c_void_p)),
        ("buffers", POINTER(POINTER(_Buffer))),
    ]


class _CallFrame(_Structure):
    _fields_: ClassVar[Any] = [
        *(("api", POINTER(_Api)), ("context", c_void_p), ("stage", c_int)),
        *(("arguments", _Buffers), ("results", _Buffers)),
    ]


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))
_kept: list[Any] = []
"""What XLA calls must stay where it is."""


@cache
def native_question(answer: Callable[[int, int], int]) -> Callable[..., Any]:
    """A traced function of two int32 scalars, and arrays to wait for, that asks ``answer``."""
    import jax

    def handle(pointer: Any) -> None:
        frame = pointer.contents
        if frame.extension:
            extension = ctypes.cast(frame.extension, POINTER(_Extension)).contents
            if extension.type == _METADATA:  # XLA asks for which version this was written
                version, own = extension.metadata.contents.version, frame.api.contents.version
                version.major, version.minor = own.major, own.minor
                return
        taken = frame.arguments.buffers
        result = frame.results.buffers[0].contents.data
        result[0] = 0
        result[0] = answer(taken[0].contents.data[0], taken[1].contents.data[0])

    handler = _HANDLER(handle)
    _kept.append(handler)
    jax.ffi.register_ffi_target(QUESTION, jax.ffi.pycapsule(handler), platform="cpu")
    return jax.ffi.ffi_call(QUESTION, jax.ShapeDtypeStruct((), np.int32))
