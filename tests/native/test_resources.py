"""The memory that native code keeps between calls."""

from __future__ import annotations

import platform
import subprocess
import sys
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
        patch.setenv("RUNNEL_CACHE_DIR", str(folder))
        try:
            build.compiler()
        except build.BuildError:
            pytest.skip("needs a C++ compiler")
        return str(build.build_library("resources", [source], options, []))


def _in_new_process(library: str, expression: str) -> str:
    """What ``expression`` gives where nothing else uses the library's memory or the process's."""
    program = f"""
import ctypes
library = ctypes.CDLL({library!r})
library.kept.restype = ctypes.c_int64
library.is_used_again.restype = ctypes.c_bool
library.is_used_again.argtypes = [ctypes.c_int64]

def kept(*sizes):
    numbers = (ctypes.c_int64 * len(sizes))(*sizes)
    return library.kept(numbers, ctypes.c_int64(len(sizes)))

print({expression})
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return run.stdout.strip()


def test_memory_is_kept_for_the_next_call(library):
    assert _in_new_process(library, f"library.is_used_again({5 * MIB})") == "True"


@pytest.mark.parametrize("sizes", [(3, 9, 27, 81), (100, 40, 15, 6)])
def test_one_buffer_at_a_time_keeps_one(library, sizes):
    numbers = [size * MIB for size in sizes]
    growth = _in_new_process(library, f"-kept({MIB}) + kept(*{numbers}, {MIB})")
    assert int(growth) < 2 * MIB
