"""Finding oneDNN, and doing without."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from runnel.native import build, kernels, onednn

PROGRAM = """
import numpy as np
import runnel as tf
from runnel.native import onednn

config = tf.ConfigProto()
config.graph_options.optimizer_options.global_jit_level = 1
x = tf.constant(np.ones((4, 5, 5, 2), np.float32))
y = tf.nn.conv2d(x, tf.fill([3, 3, 2, 4], 0.5), 1, "VALID")
with tf.Session(config=config) as session:
    assert (session.run(y) == 9.0).all()
print(onednn.load() is not None)
"""

VERSION = """
#define DNNL_VERSION_MAJOR 3
/// Minor version
#define DNNL_VERSION_MINOR 14
#define DNNL_VERSION_PATCH 1
#define DNNL_VERSION_HASH  "N/A"
"""


def _installation(folder: Path) -> Path:
    (folder / "include" / "oneapi" / "dnnl").mkdir(parents=True)
    (folder / "include" / "oneapi" / "dnnl" / "dnnl.hpp").write_text("#error not oneDNN\n")
    (folder / "include" / "oneapi" / "dnnl" / "dnnl_version.h").write_text(VERSION)
    (folder / "lib").mkdir()
    (folder / "lib" / "libdnnl.so").write_bytes(b"")
    return folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_the_environment_names_an_installation_or_turns_it_off(tmp_path, monkeypatch):
    folder = _installation(tmp_path)
    monkeypatch.setenv(onednn.VARIABLE, str(folder))
    found = onednn.installation()
    assert found is not None and found.library == folder / "lib" / "libdnnl.so"
    assert found.version == "3.14.1"
    (folder / "lib").rename(folder / "lib64")
    found = onednn.installation()
    assert found is not None and found.library == folder / "lib64" / "libdnnl.so"
    monkeypatch.setenv(onednn.VARIABLE, str(tmp_path / "nothing"))
    assert onednn.installation() is None
    monkeypatch.setenv(onednn.VARIABLE, "0")
    assert onednn.installation() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_what_cannot_be_built_is_said_once_and_done_without(tmp_path, monkeypatch):
    try:
        build.compiler()
    except build.BuildError:
        pytest.skip("needs a C++ compiler")
    monkeypatch.setenv("RUNNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(onednn.VARIABLE, str(_installation(tmp_path / "installed")))
    monkeypatch.setattr(onednn, "_load", functools.cache(onednn._load.__wrapped__))
    with pytest.warns(RuntimeWarning, match="not oneDNN"):
        assert onednn.load() is None
    with warnings.catch_warnings(action="error"):
        assert onednn.load() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_a_folder_without_onednn_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv(onednn.VARIABLE, str(tmp_path))
    monkeypatch.setattr(onednn, "_load", functools.cache(onednn._load.__wrapped__))
    with pytest.warns(RuntimeWarning, match=f"{onednn.VARIABLE}={tmp_path}: no oneDNN there"):
        assert onednn.load() is None
    with warnings.catch_warnings(action="error"):
        assert onednn.load() is None


def test_turned_off_convolutions_compile_all_the_same():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, onednn.VARIABLE: "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


BUILT = """
from runnel.native import build, onednn

def refuse(*arguments):
    raise AssertionError("built again")

build.build_library = onednn.build_library = refuse
print(onednn.explanation())
"""


@pytest.mark.skipif(not kernels.packaged(kernels.FOLDER), reason="installed without a compiler")
def test_what_the_package_carries_is_used():
    environment = {k: v for k, v in os.environ.items() if k != onednn.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", BUILT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "Convolutions on this CPU are computed by oneDNN.\n", done.stderr


def test_a_library_of_other_sources_has_another_name(tmp_path, monkeypatch):
    for path in kernels.FOLDER.iterdir():
        if path.suffix in (".cpp", ".h"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    name = kernels.packaged_name("0.3")
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    monkeypatch.setattr(kernels, "SOURCES", [tmp_path / path.name for path in kernels.SOURCES])
    assert kernels.packaged_name("0.3") == name
    (tmp_path / name).touch()
    assert kernels.packaged(tmp_path) == kernels.packaged(tmp_path, "0.3") == [tmp_path / name]
    assert kernels.packaged(tmp_path, "0.4") == []
    with open(tmp_path / "resources.h", "a") as header:
        header.write("// changed")
    assert kernels.packaged(tmp_path) == []


def test_the_interface_of_the_installed_xla_is_known():
    jax = pytest.importorskip("jax")
    major, minor = kernels.interface_version(Path(jax.ffi.include_dir())).split(".")
    assert int(major) >= 0 and int(minor) >= 0
