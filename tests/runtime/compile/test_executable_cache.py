"""Executables on disk: the next process compiles nothing, and whatever is wrong is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.native import cache_folder
from runnel.native.build import kept_libraries
from runnel.runtime.compile import entry_store, executable_cache
from tests.runtime.compile.kept_programs import PROGRAMS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder of executables, of this test alone."""
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "executables"


def _started(name: str, folder: Path, dumped: Path, **environment: str) -> subprocess.Popen[str]:
    """A process that runs a program, with nothing but ``folder`` to learn from."""
    dump = f"--xla_dump_to={dumped} --xla_dump_hlo_as_text"
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count=2 {dump}",
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        cache_folder.VARIABLE: str(folder),
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.compile.kept_programs", name],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    return json.loads(output)


def _compiled_by_xla(dumped: Path) -> int:
    """How many programs XLA itself says that it has compiled; asked once."""
    found = list(dumped.glob("*.before_optimizations.txt"))
    for path in found:
        path.unlink()
    return len(found)


_TRACED_AGAIN = {"library_calls": 1, "asking": 1}
"""Segments for which JAX itself registers functions while it lowers them, and with callbacks."""


@pytest.mark.skipif(os.environ["JAX_PLATFORMS"] != "cpu", reason="on two CPU devices")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_second_process_compiles_nothing_and_computes_the_same(name, tmp_path):
    folder, dumped = tmp_path / "cache", tmp_path / "dumped"
    folder.mkdir(mode=0o700)
    for library in kept_libraries():  # which take long to build
        (folder / library.name).symlink_to(library)
    first = _told(_started(name, folder, dumped, PYTHONHASHSEED="1"))
    compiled = _compiled_by_xla(dumped)
    assert compiled == first["compiled"] > 0
    second = _told(_started(name, folder, dumped, PYTHONHASHSEED="2"))
    assert _compiled_by_xla(dumped) == 0
    assert "compiled" not in second
    assert first["traced"] > 0
    assert second["traced"] == _TRACED_AGAIN.get(name, 0)
    # What a process needs twice it compiles once.
    assert second["loaded"] == compiled + first.get("loaded", 0)
    assert second["values"] == first["values"]


@pytest.mark.skipif(os.environ["JAX_PLATFORMS"] != "cpu", reason="on two CPU devices")
def test_two_processes_that_start_at_once_do_not_disturb_each_other(tmp_path):
    folder, dumped = tmp_path / "cache", tmp_path / "dumped"
    both = [_started("classifier", folder, dumped) for _ in range(2)]
    first, second = map(_told, both)
    third = _told(_started("classifier", folder, dumped))
    assert first["values"] == second["values"] == third["values"]
    assert "compiled" not in third


@pytest.mark.skipif(os.environ["JAX_PLATFORMS"] != "cpu", reason="on two CPU devices")
def test_without_a_folder_programs_run_as_before(tmp_path):
    (tmp_path / "file").write_text("in the way")
    told = _told(_started("two_devices", tmp_path / "file", tmp_path / "dumped"))
    assert told["compiled"] == 2 and "loaded" not in told
    assert told["values"]


def _lowered(scale: float = 3.0) -> Any:
    """A program that JAX has not seen before, which is always the same."""
    return jax.jit(lambda x: jnp.tanh(x @ x) * scale).lower(np.zeros([4, 4], np.float32))


X = np.random.RandomState(0).rand(4, 4).astype(np.float32)


def _made(make: Callable[[], Any] = _lowered, scale: float = 3.0) -> str:
    """Whether a program was compiled or loaded; it computes what it should."""
    before = executable_cache.counts.copy()
    result = executable_cache.compiled(make())(X)
    np.testing.assert_allclose(result, np.tanh(X @ X) * scale, rtol=1e-5)
    (made,) = executable_cache.counts - before
    return made


def test_a_program_is_compiled_once_and_another_is_another(folder):
    assert [_made(), _made()] == ["compiled", "loaded"]
    other = (lambda: _lowered(4.0), 4.0)
    assert [_made(*other), _made(*other), _made()] == ["compiled", "loaded", "loaded"]
    assert len(list(folder.iterdir())) == 2


@settings(deadline=None, max_examples=15)
@given(st.floats(0, 1, exclude_max=True), st.booleans())
def test_a_damaged_file_is_compiled_again_and_replaced(place, truncated):
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache_folder.VARIABLE, home)
        assert _made() == "compiled"
        (path,) = Path(home, "executables").iterdir()
        whole = path.read_bytes()
        at = int(place * len(whole))
        rest = b"" if truncated else bytes([whole[at] ^ 255]) + whole[at + 1 :]
        path.write_bytes(whole[:at] + rest)
        assert [_made(), _made()] == ["compiled", "loaded"]
        assert len(list(path.parent.iterdir())) == 1


def test_what_xla_cannot_read_is_compiled_again_and_replaced(folder):
    assert _made() == "compiled"
    store = entry_store.executables()
    assert store is not None
    (entry,) = store.entries()
    for content in (b"", b"no executable"):
        store.write(entry.path.stem, content)
        assert [_made(), _made()] == ["compiled", "loaded"]


@pytest.mark.parametrize("fact", ["JAX", "jaxlib", "processor", "threads", "form", "flags"])
def test_an_executable_of_another_version_or_machine_is_not_loaded(fact, folder, monkeypatch):
    assert _made() == "compiled"
    with monkeypatch.context() as other:
        if fact == "JAX":
            other.setattr(jax, "__version__", "0.10.99")
        elif fact == "jaxlib":
            other.setattr(executable_cache, "version_of", lambda package: "0.10.99")
        elif fact == "processor":
            other.setattr(executable_cache, "processor", lambda: "another one")
        elif fact == "threads":
            other.setattr(executable_cache, "usable_cores", lambda: 1000)
        elif fact == "form":
            other.setattr(executable_cache, "_FORM", "0")
        else:
            other.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
        assert _made() == "compiled"
    assert _made() == "loaded"
    assert len(list(folder.iterdir())) == 2


def test_options_of_xla_make_another_executable(folder):
    def lowered() -> Any:
        options = {"xla_cpu_enable_fast_math": True}
        function = jax.jit(lambda x: jnp.tanh(x @ x) * 3.0, compiler_options=options)
        return function.lower(np.zeros([4, 4], np.float32))

    assert [_made(), _made(lowered), _made(lowered)] == ["compiled", "compiled", "loaded"]


def test_the_place_in_the_source_does_not_matter(folder):
    def elsewhere() -> Any:
        scale = 3.0
        return jax.jit(lambda x: jnp.tanh(x @ x) * scale).lower(np.zeros([4, 4], np.float32))

    assert [_made(), _made(elsewhere)] == ["compiled", "loaded"]


def test_switched_off_nothing_is_kept(folder, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "0")
    assert [_made(), _made()] == ["compiled", "compiled"]
    assert not folder.exists()


class _OtherJax:
    """What JAX lowered, without the name that is not public."""

    def __init__(self, lowered: Any) -> None:
        self.compile = lowered.compile
        self.as_text = lowered.as_text


def test_with_a_jax_that_has_no_such_name_everything_is_compiled(folder):
    def lowered() -> Any:
        return _OtherJax(_lowered())

    assert [_made(lowered), _made(lowered)] == ["compiled", "compiled"]


def test_with_a_jax_that_takes_no_other_client_everything_is_compiled(folder, monkeypatch):
    def refused(*arguments: Any, **options: Any) -> Any:
        raise TypeError("not a client")

    monkeypatch.setattr(executable_cache._KeepingClient, "compile_and_load", refused)
    assert [_made(), _made()] == ["compiled", "compiled"]


def test_what_xla_refuses_is_refused_once(folder):
    call = jax.ffi.ffi_call("nobody_has_registered_this", jax.ShapeDtypeStruct((), np.float32))
    before = executable_cache.counts.copy()
    with pytest.raises(Exception, match="nobody_has_registered_this"):
        executable_cache.compiled(jax.jit(lambda: call()).lower())
    assert executable_cache.counts - before == {"compiled": 1}
    assert list(folder.iterdir()) == []


def test_a_loaded_program_is_called_without_any_python_code(folder):
    def function(x: Any) -> Any:
        return jnp.tanh(x @ x) * 3.0

    called: list[str] = []
    for made in ("compiled", "loaded"):
        jitted = jax.jit(lambda x: function(x))
        assert _made(lambda jitted=jitted: jitted.lower(X)) == made
        jitted(X)  # JAX prepares the first call in Python
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name))
        try:
            jitted(X)
        finally:
            sys.setprofile(None)
    # A built-in is reported with the frame that calls it, which is this one.
    assert set(called) == {"test_a_loaded_program_is_called_without_any_python_code"}


def test_a_loaded_callback_calls_the_function_of_this_process(folder):
    called: list[str] = []

    def lowered(who: str) -> Any:
        def tell(x: np.ndarray) -> np.ndarray:
            called.append(who)
            return np.asarray(x) + 1

        shape = jax.ShapeDtypeStruct((), np.float32)
        return jax.jit(lambda x: jax.pure_callback(tell, shape, x)).lower(np.float32(0))

    for who in ("first", "second"):
        assert executable_cache.compiled(lowered(who))(np.float32(1)) == 2
    assert called == ["first", "second"]


def test_a_loaded_step_updates_in_place_and_fails_as_a_compiled_one(folder):
    def run() -> tuple[str, Any]:
        before = executable_cache.counts.copy()
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
        with tf.Graph().as_default(), tf.Session(config=config) as sess:
            table = tf.Variable(np.ones([5, 2], np.float32))
            rows = tf.placeholder(tf.int32, [None])
            update = tf.scatter_add(table, rows, tf.gather(table, rows))
            sess.run(table.initializer)
            sess.run(update.op, {rows: [1, 3]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
                sess.run(update.op, {rows: [1, 7]})
            value = sess.run(table)
        (made,) = executable_cache.counts - before
        return made, value

    (first, value), (second, again) = run(), run()
    assert [first, second] == ["compiled", "loaded"]
    np.testing.assert_array_equal(value[:, 0], [1, 2, 1, 2, 1])
    np.testing.assert_array_equal(again, value)


def test_the_configuration_of_jax_stays_as_it_is(folder):
    before = dict(jax.config.values)
    assert [_made(), _made()] == ["compiled", "loaded"]
    assert dict(jax.config.values) == before
    assert jax.jit(lambda x: x + 1)(1) == 2  # of the user, which is not kept
    assert len(list(folder.iterdir())) == 1
