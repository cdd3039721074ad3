"""The library that reads input: carried by the package, built when it is needed, or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from runnel.native import build, input_library, kernels
from runnel.native.compiling import BuildError

needs_compiler = pytest.mark.skipif(
    input_library.input_library() is None, reason="needs a C++ compiler"
)


def refuse(*arguments: object) -> Path:
    raise BuildError("there is no C++ compiler")


@needs_compiler
def test_the_library_of_the_package_is_used_if_it_was_made_of_todays_sources(tmp_path, monkeypatch):
    built = build.build_library("input", kernels.INPUT_SOURCES, [], [])
    (tmp_path / kernels.packaged_input_name()).write_bytes(built.read_bytes())
    monkeypatch.setattr(input_library, "build_library", refuse)
    found = kernels.packaged_input
    monkeypatch.setattr(kernels, "packaged_input", lambda folder: found(tmp_path))
    library, why = input_library._load.__wrapped__()
    assert why == "" and library.runnel_crc32c(b"", 0) == 0
    sources = [tmp_path / source.name for source in kernels.INPUT_SOURCES]
    for source in sources:
        source.write_text("// changed\n")
    monkeypatch.setattr(kernels, "INPUT_SOURCES", sources)
    assert input_library._load.__wrapped__() == (None, "there is no C++ compiler")


def test_without_a_compiler_python_reads_and_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(input_library, "build_library", refuse)
    monkeypatch.setattr(kernels, "packaged_input", lambda folder: [])
    monkeypatch.setattr(input_library, "_load", input_library._load.__wrapped__)
    assert input_library.input_library() is None
    assert input_library.explanation() == (
        "Records and examples are read by Python code: there is no C++ compiler."
    )


@needs_compiler
def test_a_variable_turns_it_off(monkeypatch):
    assert input_library.explanation() == "Records and examples are read by native code."
    monkeypatch.setenv(input_library.VARIABLE, "0")
    assert input_library.input_library() is None
    assert input_library.explanation().endswith(": RUNNEL_NATIVE_INPUT=0.")
