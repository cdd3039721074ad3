"""A folder of entries: all of one or nothing, whatever happens to the files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runnel.native import cache_folder
from runnel.runtime.compile import entry_store
from runnel.runtime.compile.entry_store import EntryStore, executables, size_limit

CONTENT = bytes(range(256)) * 4


def _random(size: int) -> bytes:
    """What no compression makes smaller."""
    return os.urandom(size)


@pytest.fixture
def store(tmp_path: Path) -> EntryStore:
    return EntryStore(tmp_path, 1 << 20)


def _age(store: EntryStore, name: str, seconds: float) -> None:
    """Makes an entry look as if it had been used so long ago."""
    path = store.folder / f"{name}.entry"
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_what_was_written_is_read_also_by_another_store(store):
    store.write("a", CONTENT)
    store.write("b", b"")
    assert store.read("a") == EntryStore(store.folder, 1 << 20).read("a") == CONTENT
    assert store.read("b") == b""
    assert store.read("c") is None


def test_writing_again_replaces(store):
    store.write("a", b"old")
    store.write("a", CONTENT)
    assert store.read("a") == CONTENT
    assert len(list(store.folder.iterdir())) == 1


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_whatever_is_changed_in_a_file_makes_it_absent(data):
    with tempfile.TemporaryDirectory() as folder:
        store = EntryStore(Path(folder), 1 << 20)
        store.write("a", CONTENT)
        (path,) = store.folder.iterdir()
        whole = path.read_bytes()
        at = data.draw(st.integers(0, len(whole) - 1))
        kind = data.draw(st.sampled_from(["flip", "truncate", "extend", "zeros"]))
        if kind == "flip":
            bit = data.draw(st.integers(0, 7))
            damaged = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
        elif kind == "truncate":
            damaged = whole[:at]
        elif kind == "extend":
            damaged = whole + data.draw(st.binary(min_size=1, max_size=40))
        else:  # as a file system leaves it that lost what was written last
            damaged = whole[:at] + bytes(len(whole) - at)
        assume(damaged != whole)
        path.write_bytes(damaged)
        assert store.read("a") is None
        store.write("a", CONTENT)
        assert store.read("a") == CONTENT


def test_an_entry_under_another_name_is_absent(store):
    store.write("a", CONTENT)
    (store.folder / "a.entry").rename(store.folder / "b.entry")
    assert store.read("b") is None


def test_an_entry_of_another_version_of_the_form_is_absent(store, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(entry_store, "_MARK", b"runnel entry 2\n")
        store.write("a", CONTENT)
        assert store.read("a") == CONTENT
    assert store.read("a") is None


def test_those_that_were_used_longest_ago_make_room(tmp_path):
    store = EntryStore(tmp_path, 3500)
    for age, name in enumerate("cba"):
        store.write(name, _random(1000))
        _age(store, name, 100.0 * (3 - age))
    assert store.read("c") is not None  # so it is the one that was used last
    store.write("d", _random(1000))
    assert [store.read(name) is not None for name in "abcd"] == [True, False, True, True]
    store.write("e", _random(3000))
    assert [entry.path.stem for entry in store.entries()] == ["e"]
    store.write("f", _random(4000))  # more than all may take
    assert [entry.path.stem for entry in store.entries()] == ["e"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2000)), max_size=30))
def test_the_limit_holds_after_every_write(writes):
    with tempfile.TemporaryDirectory() as folder:
        store = EntryStore(Path(folder), 4000)
        for name, size in writes:
            store.write(str(name), _random(size))
            assert sum(path.stat().st_size for path in store.folder.iterdir()) <= 4000
            assert len(store.read(str(name)) or b"") == size


def test_what_a_process_that_was_killed_has_left_goes_after_a_while(store):
    old, new = store.folder / "old.part", store.folder / "new.part"
    old.write_bytes(b"half")
    new.write_bytes(b"being written")
    os.utime(old, (1.0, 1.0))
    store.write("a", CONTENT)
    assert sorted(path.name for path in store.folder.iterdir()) == ["a.entry", "new.part"]
    store.clear()
    assert list(store.folder.iterdir()) == []


WRITER = """
import sys
from pathlib import Path
from runnel.runtime.compile.entry_store import EntryStore
store, own = EntryStore(Path(sys.argv[1]), 20_000), sys.argv[2].encode()
for turn in range(300):
    name = str(turn % 7)
    found = store.read(name)
    assert found is None or found == bytes([found[0]]) * 5000, "a mixture"
    store.write(name, own * 5000)
    if turn % 50 == 49:
        store.clear()
"""


def test_processes_that_write_and_clear_at_the_same_time_never_see_half_an_entry(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), own]) for own in "xyz"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert all(path.suffix == ".entry" for path in tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_entry_as_it_was(store, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("no space left on device")

    store.write("a", CONTENT)
    monkeypatch.setattr(entry_store.os, "replace", refuse)
    store.write("a", b"new")
    assert store.read("a") == CONTENT
    assert [path.name for path in store.folder.iterdir()] == ["a.entry"]


def test_a_folder_that_has_gone_loses_nothing_but_the_entry(store):
    store.folder.rmdir()
    store.write("a", CONTENT)
    assert store.read("a") is None
    assert store.entries() == []


def test_a_folder_that_cannot_be_written_means_that_nothing_is_kept(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError("read-only")

    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    store = executables()
    assert store is not None
    monkeypatch.setattr(entry_store.tempfile, "mkstemp", refuse)
    store.write("a", CONTENT)
    assert store.read("a") is None


def test_a_folder_that_is_a_file_or_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert executables() is None
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "open"))
    assert executables() is not None
    os.chmod(tmp_path / "open", 0o777)
    assert executables() is None


@pytest.mark.parametrize(
    ("setting", "limit"),
    [
        ("", 1 << 30),
        ("0", 0),
        ("1000", 1000),
        ("500M", 500 << 20),
        ("2 GiB", 2 << 30),
        ("1.5k", 1536),
    ],
)
def test_the_environment_says_how_much_is_kept(setting, limit, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, setting)
    assert size_limit() == limit
    store = executables()
    assert (store is None) if limit == 0 else store is not None and store.limit == limit


def test_a_size_that_is_none_is_told_and_the_default_used(monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "plenty")
    with pytest.warns(RuntimeWarning, match="RUNNEL_CACHE_SIZE=plenty is not a size, such as 500M"):
        store = executables()
    assert store is not None and store.limit == entry_store.DEFAULT_LIMIT
