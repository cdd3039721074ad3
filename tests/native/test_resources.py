"""The memory that native code keeps between calls."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import jax
import pytest

from runnel.native import build

MIB = 1 << 20
PROGRAM = """
#include <malloc.h>

#include "resources.h"

// What is in use when buffers of these sizes have come and gone, one after the other.
extern "C" int64_t kept(const int64_t* sizes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) runnel::Buffer buffer(sizes[i]);
  const auto memory = mallinfo2();
  return memory.uordblks + memory.hblkhd;
}

extern "C" bool is_used_again(int64_t bytes) {
  const char* before;
  {
    runnel::Buffer buffer(bytes);
    before = buffer.data();
  }
  void* between = std::aligned_alloc(4096, bytes);  // takes the place of what was given back
  runnel::Buffer buffer(bytes);
  std::free(between);
  return buffer.data() == before;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("asks GNU's C library how much memory is in use")
    folder = tmp_path_factory.mktemp("resources")
    source = folder / "program.cpp"
    source.write_text(PROGRAM)
    headers = Path(build.__file__).parent
    options = ["-O0", "-fopenmp", f"-I{headers}", f"-I{jax.ffi.include_dir()}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        try:
            build.compiler()
        except build.BuildError:
            pytest.skip("needs a C++ compiler")
        loaded = ctypes.CDLL(str(build.build_library("resources", [source], options, [])))
    loaded.kept.restype = ctypes.c_int64
    loaded.is_used_again.restype = ctypes.c_bool
    loaded.is_used_again.argtypes = [ctypes.c_int64]
    return loaded


def _kept(library, *sizes: int) -> int:
    numbers = (ctypes.c_int64 * len(sizes))(*sizes)
    return library.kept(numbers, ctypes.c_int64(len(sizes)))


def test_memory_is_kept_for_the_next_call(library):
    assert library.is_used_again(5 * MIB)


@pytest.mark.parametrize("sizes", [(3, 9, 27, 81), (100, 40, 15, 6)])
def test_one_buffer_at_a_time_keeps_one(library, sizes):
    before = _kept(library, MIB)
    after = _kept(library, *(size * MIB for size in sizes), MIB)
    assert after - before < 2 * MIB
