"""``tf.gfile`` does, and refuses, what TensorFlow's does."""

from __future__ import annotations

import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1


def outcome(function):
    try:
        return function()
    except Exception as error:  # noqa: BLE001 (what it is is compared)
        return type(error).__name__


def journey(lib, folder):
    """What each call of a program gives, or which error."""
    gfile, new = lib.gfile, lib.io.gfile
    top = str(folder)
    name = f"{top}/a.txt"
    found = []

    def note(function):
        found.append(outcome(function))

    with gfile.GFile(name, "w") as file:
        file.write("one\ntwo\n")
        note(lambda: file.read())
    with gfile.Open(name, "a") as file:
        file.write(b"three")
    with gfile.FastGFile(name) as file:
        note(file.readline)
        note(file.tell)
        note(lambda: file.read(2))
        note(lambda: file.seek(0))
        note(file.readlines)
        note(file.size)
        note(lambda: file.write("x"))
    with gfile.GFile(name, "rb") as file:
        note(lambda: list(file))
        note(lambda: file.seek(1, whence=9))
    note(lambda: gfile.GFile(f"{top}/none").read())
    note(lambda: gfile.GFile(top).read() and None)
    note(lambda: gfile.Exists(name))
    note(lambda: gfile.Exists(f"{top}/none"))
    note(lambda: gfile.IsDirectory(top))
    note(lambda: gfile.Stat(name).length)
    note(lambda: gfile.Stat(f"{top}/none"))
    note(lambda: gfile.MkDir(f"{top}/one"))
    note(lambda: gfile.MkDir(f"{top}/one"))
    note(lambda: gfile.MkDir(f"{top}/two/three"))
    note(lambda: gfile.MakeDirs(f"{top}/two/three"))
    note(lambda: gfile.MakeDirs(f"{top}/two/three"))
    note(lambda: gfile.Copy(name, f"{top}/b.txt"))
    note(lambda: gfile.Copy(name, f"{top}/b.txt"))
    note(lambda: gfile.Copy(name, f"{top}/b.txt", overwrite=True))
    note(lambda: gfile.Copy(f"{top}/none", f"{top}/c.txt"))
    note(lambda: gfile.Rename(name, f"{top}/b.txt"))
    note(lambda: gfile.Rename(name, f"{top}/two/c.txt"))
    note(lambda: sorted(x.rstrip("/") for x in gfile.ListDirectory(top)))
    note(lambda: gfile.ListDirectory(f"{top}/none"))
    note(lambda: sorted(path[len(top) :] for path in gfile.Glob(f"{top}/*.txt")))
    note(lambda: sorted(path[len(top) :] for path in new.glob([f"{top}/*.txt", f"{top}/o*"])))
    note(lambda: sorted((a[len(top) :], sorted(b), sorted(c)) for a, b, c in gfile.Walk(top)))
    note(lambda: gfile.Remove(f"{top}/b.txt"))
    note(lambda: gfile.Remove(f"{top}/b.txt"))
    note(lambda: gfile.DeleteRecursively(f"{top}/two"))
    note(lambda: gfile.DeleteRecursively(f"{top}/two"))
    note(lambda: sorted(x.rstrip("/") for x in new.listdir(top)))
    return found


def test_files_and_folders(tmp_path):
    found = []
    for name, lib in (("ours", tf), ("theirs", reference)):
        (tmp_path / name).mkdir()
        found.append(journey(lib, tmp_path / name))
    for number, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert ours == theirs, f"call {number}"
