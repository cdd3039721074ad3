"""Files beyond this machine: what ``tf.gfile`` does here it does wherever ``fsspec`` reaches."""

from __future__ import annotations

import time

import pytest

import runnel as tf

fsspec = pytest.importorskip("fsspec")
gfile = tf.io.gfile


@pytest.fixture(params=["here", "memory"])
def top(request, tmp_path):
    """A folder on this machine, and one in fsspec's file system in memory."""
    if request.param == "here":
        yield str(tmp_path)
        return
    store = fsspec.filesystem("memory")
    folder = f"memory://{tmp_path.name}"
    store.makedirs(folder)
    yield folder
    store.rm(folder, recursive=True)


@pytest.fixture
def memory(tmp_path):
    store = fsspec.filesystem("memory")
    folder = f"memory://{tmp_path.name}-far"
    store.makedirs(folder)
    yield folder
    if store.exists(folder):
        store.rm(folder, recursive=True)


def write(path, text="text"):
    with gfile.GFile(path, "w") as file:
        file.write(text)


def read(path):
    with gfile.GFile(path) as file:
        return file.read()


def tree(top):
    """a, b/c, b/d/e."""
    gfile.makedirs(f"{top}/b/d")
    for name in ("a", "b/c", "b/d/e"):
        write(f"{top}/{name}", name)
    return top


def test_what_is_written_can_be_read(top):
    write(f"{top}/a", "one\ntwo\n")
    with gfile.GFile(f"{top}/a", "a") as file:
        file.write("three")
    assert read(f"{top}/a") == "one\ntwo\nthree"
    assert gfile.exists(f"{top}/a") and not gfile.exists(f"{top}/b")
    assert gfile.isdir(top) and not gfile.isdir(f"{top}/a")


def test_a_file_says_when_it_was_changed(top):
    before = time.time()
    write(f"{top}/a", "12345")
    known = gfile.stat(f"{top}/a")
    assert known.length == 5 and not known.is_directory
    assert abs(known.mtime_nsec / 1e9 - before) < 100
    assert gfile.stat(top).is_directory


def test_paths_that_are_found_can_be_opened(top):
    tree(top)
    assert gfile.glob(f"{top}/b/*") == [f"{top}/b/c", f"{top}/b/d"]
    assert [read(path) for path in gfile.glob([f"{top}/a", f"{top}/b/c*"])] == ["a", "b/c"]
    assert sorted(gfile.listdir(top)) == ["a", "b"]


def test_outer_folders_come_first_or_last(top):
    tree(top)
    expected = [(top, ["b"], ["a"]), (f"{top}/b", ["d"], ["c"]), (f"{top}/b/d", [], ["e"])]
    assert list(gfile.walk(top)) == expected
    assert list(gfile.walk(top, topdown=False)) == expected[::-1]
    assert list(tf.gfile.Walk(top, in_order=False)) == expected[::-1]


def test_a_folder_can_be_left_out_of_a_walk(top):
    tree(top)
    seen = []
    for folder, folders, _ in gfile.walk(top):
        seen.append(folder)
        folders[:] = [name for name in folders if name != "d"]
    assert seen == [top, f"{top}/b"]


def test_a_walk_tells_of_a_folder_that_is_not_there(top):
    told = []
    assert list(gfile.walk(f"{top}/none", onerror=told.append)) == []
    assert [type(error) for error in told] == [tf.errors.NotFoundError]
    assert list(gfile.walk(f"{top}/none")) == []


def test_missing_files_are_not_found(top):
    for act in (
        lambda: read(f"{top}/none"),
        lambda: gfile.stat(f"{top}/none"),
        lambda: gfile.listdir(f"{top}/none"),
        lambda: gfile.remove(f"{top}/none"),
        lambda: gfile.rename(f"{top}/none", f"{top}/other"),
    ):
        with pytest.raises(tf.errors.NotFoundError):
            act()


def test_a_file_moves_within_a_place(top):
    write(f"{top}/a", "new")
    write(f"{top}/b", "old")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.rename(f"{top}/a", f"{top}/b")
    gfile.rename(f"{top}/a", f"{top}/b", overwrite=True)
    assert read(f"{top}/b") == "new" and not gfile.exists(f"{top}/a")


def test_a_file_moves_to_another_place_and_back(memory, tmp_path):
    here = str(tmp_path / "file")
    write(here, "it")
    gfile.rename(here, f"{memory}/file")
    assert read(f"{memory}/file") == "it" and not gfile.exists(here)
    gfile.rename(f"{memory}/file", here)
    assert read(here) == "it" and not gfile.exists(f"{memory}/file")


def test_a_folder_moves_to_another_place(memory, tmp_path):
    tree(str(tmp_path / "from"))
    gfile.rename(str(tmp_path / "from"), f"{memory}/to")
    assert not gfile.exists(str(tmp_path / "from"))
    assert [files for _, _, files in gfile.walk(f"{memory}/to")] == [["a"], ["c"], ["e"]]
    assert read(f"{memory}/to/b/d/e") == "b/d/e"


def test_records_lie_there_too(top):
    path = f"{top}/records"
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"one")
    assert list(tf.python_io.tf_record_iterator(path)) == [b"one"]


def test_a_tree_is_removed(top):
    tree(top)
    gfile.rmtree(f"{top}/b")
    assert sorted(gfile.listdir(top)) == ["a"]
