"""Builds the native code into the package, where that is possible; pyproject.toml has the rest.

It needs Linux on x86-64 and a C++ compiler; XLA's and oneDNN's headers come as build requirements.
Where it is not possible the package is complete without it: it computes convolutions by its own
formulations and reads input in Python. ``python -m runnel.native`` says what an installation has.
"""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

NATIVE = Path(__file__).parent / "runnel" / "native"
sys.path.insert(0, str(NATIVE))

import compiling  # noqa: E402
import kernels  # noqa: E402

REQUIREMENTS = ["jaxlib>=0.10,<0.13", "onednn-devel-cpu-gomp>=2023.2"]


def can_build() -> bool:
    """Whether native code can be compiled here, given its headers."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        return bool(compiling.compiler())
    except compiling.BuildError:
        return False


class BuildWithKernels(build_py):
    """Puts the library beside the sources, unless they have it, before they are copied."""

    def run(self) -> None:
        for what, found, build in (
            ("kernels", kernels.packaged(NATIVE), self._build_kernels),
            ("reading of input", kernels.packaged_input(NATIVE), self._build_input),
        ):
            try:
                if not found:
                    build()
            except (compiling.BuildError, metadata.PackageNotFoundError) as error:
                self.warn(f"runnel is built without its native {what}: {error}")
        super().run()  # which takes them along, if there is more to do than to find them

    def _build_kernels(self) -> None:
        _require_platform()
        include = _folder_of("jaxlib", "xla/ffi/api/c_api.h", 4)
        headers = _folder_of("onednn-devel-cpu-gomp", "include/oneapi/dnnl/dnnl.hpp", 3)
        libraries = _folder_of("onednn-cpu-gomp", "libdnnl.so", 1)
        name = kernels.packaged_name(kernels.interface_version(include))
        options = kernels.options(include, headers, libraries)
        _build("kernels-*.so", name, kernels.SOURCES, options)

    def _build_input(self) -> None:
        _require_platform()
        _build("input.*.so", kernels.packaged_input_name(), kernels.INPUT_SOURCES, [])


def _require_platform() -> None:
    if not can_build():
        raise compiling.BuildError("it needs Linux on x86-64 and a C++ compiler")


def _build(old: str, name: str, sources: list[Path], options: list[str]) -> None:
    """Compiles a library into the package, in place of those of other sources."""
    for path in NATIVE.glob(old):
        path.unlink()
    library = NATIVE / name
    made = library.with_suffix(".building")
    command = [compiling.compiler(), *compiling.LIBRARY_OPTIONS, *map(str, sources), *options]
    try:
        compiling.compile_library([*command, "-s", "-o", str(made)])
        made.replace(library)
    finally:
        made.unlink(missing_ok=True)


def _folder_of(distribution: str, ending: str, levels: int) -> Path:
    """The folder so many levels above the file of an installed distribution."""
    package = metadata.distribution(distribution)
    for file in package.files or ():
        if file.as_posix().endswith(ending):
            return Path(str(package.locate_file(file))).resolve().parents[levels - 1]
    raise compiling.BuildError(f"{distribution} has no {ending}")


class PlatformDistribution(Distribution):
    """A distribution with kernels is for one platform..."""

    def has_ext_modules(self) -> bool:
        return can_build()


class PlatformWheel(bdist_wheel):
    """... and for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, system = super().get_tag()
        return (python, abi, system) if self.root_is_pure else ("py3", "none", system)


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel},
    setup_requires=REQUIREMENTS if can_build() and not kernels.packaged(NATIVE) else [],
)
