"""Compiling a shared library once for each content."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from runnel.native import build
from runnel.native.cache_folder import cache_folder

ANSWER = 'extern "C" int answer() { return ANSWER; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNNEL_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "answer.cpp"
    path.write_text(ANSWER)
    return path


@pytest.fixture
def compiler() -> str:
    try:
        return build.compiler()
    except build.BuildError:
        pytest.skip("needs a C++ compiler")


def test_a_library_is_built_once_for_each_content(source, compiler, monkeypatch):
    first = build.build_library("answer", [source], ["-DANSWER=42"], ["1"])
    assert ctypes.CDLL(str(first)).answer() == 42
    with monkeypatch.context() as without_compiling:
        without_compiling.setattr(
            build, "compile_library", lambda command: pytest.fail("compiled again")
        )
        assert build.build_library("answer", [source], ["-DANSWER=42"], ["1"]) == first
    others = [
        build.build_library("answer", [source], ["-DANSWER=43"], ["1"]),
        build.build_library("answer", [source], ["-DANSWER=42"], ["2"]),
    ]
    source.write_text(ANSWER + "// changed\n")
    others.append(build.build_library("answer", [source], ["-DANSWER=42"], ["1"]))
    source.with_name("part.h").write_text("// of the same folder\n")
    others.append(build.build_library("answer", [source], ["-DANSWER=42"], ["1"]))
    assert len({first, *others}) == 5
    assert ctypes.CDLL(str(others[0])).answer() == 43


def test_a_source_that_does_not_compile_leaves_nothing(source, compiler):
    source.write_text("int main( {")
    with pytest.raises(build.BuildError, match="error"):
        build.build_library("answer", [source], [], [])
    assert list(cache_folder().iterdir()) == []


def test_without_a_compiler(source, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(build.BuildError, match="no C\\+\\+ compiler"):
        build.build_library("answer", [source], [], [])


def test_a_compiler_is_run_by_its_own_name_and_known_by_what_it_leads_to(
    source, compiler, tmp_path, monkeypatch
):
    link, target = tmp_path / "chosen", tmp_path / "compiler-2"
    link.symlink_to(compiler)
    monkeypatch.setenv("CXX", str(link))
    assert build.compiler() == str(link)
    first = build.build_library("answer", [source], ["-DANSWER=42"], [])
    target.write_text(f'#!/bin/sh\nexec "{compiler}" "$@"\n')
    target.chmod(0o700)
    link.unlink()
    link.symlink_to(target)
    assert build.build_library("answer", [source], ["-DANSWER=42"], []) != first


def test_a_folder_that_cannot_be_written(source, compiler, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError("read-only")

    monkeypatch.setattr(build.tempfile, "mkstemp", refuse)
    with pytest.raises(build.BuildError, match="cannot be written: read-only"):
        build.build_library("answer", [source], ["-DANSWER=42"], [])


def test_a_folder_that_others_can_write_is_refused(source, compiler):
    folder = cache_folder()
    assert folder.stat().st_mode & 0o077 == 0
    os.chmod(folder, 0o777)
    with pytest.raises(build.BuildError, match="written by others"):
        build.build_library("answer", [source], [], [])
