"""The checksum of the sources: another for other sources, and soon found for the same."""

from importlib import metadata

import pytest

from runnel.runtime.compile import entry_store, source_checksum
from runnel.runtime.compile.source_checksum import packages_named, sources, version_of


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder in the place of runnel's; what is kept is kept beside it."""
    package = tmp_path / "package"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(source_checksum, "PACKAGE", package)
    monkeypatch.setenv("RUNNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RUNNEL_CACHE_SIZE", "1G")
    return package / "inner"


@pytest.fixture
def settled(monkeypatch):
    """Files that were written just now are as good as old ones."""
    monkeypatch.setattr(source_checksum, "_SETTLED_NS", -(10**12))


def _entries() -> int:
    store = entry_store.executables()
    return 0 if store is None else len(store.entries())


def test_a_change_of_the_sources_is_seen(folder):
    seen = []

    def look() -> bool:
        """Whether the checksum is one that was not seen before."""
        seen.append(sources.__wrapped__())
        return seen.count(seen[-1]) == 1

    assert look() and not look()
    (folder / "a.py").write_text("1")
    assert look()
    (folder / "a.py").write_text("2")
    assert look()
    (folder / "a.py").rename(folder / "b.py")
    assert look()
    (folder / "__pycache__" / "b.pyc").write_text("compiled")
    assert not look()


def test_files_that_are_as_they_were_are_not_read_again(folder, settled, monkeypatch):
    (folder / "a.py").write_text("1")
    found = sources.__wrapped__()
    with monkeypatch.context() as patch:
        patch.setattr(source_checksum, "_checksum", None)
        assert sources.__wrapped__() == found
    (folder / "a.py").write_text("1 + 1")
    assert sources.__wrapped__() != found
    (folder / "a.py").write_text("1")
    assert sources.__wrapped__() == found  # whenever, and wherever, it was written


def test_a_checksum_that_was_damaged_is_made_again(folder, settled):
    (folder / "a.py").write_text("1")
    found = sources.__wrapped__()
    store = entry_store.executables()
    assert store is not None
    (entry,) = store.entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-1])
    assert sources.__wrapped__() == found


def test_nothing_is_kept_of_files_that_were_written_just_now(folder):
    (folder / "a.py").write_text("1")
    sources.__wrapped__()
    assert _entries() == 0


def test_without_a_store_everything_is_read(folder, settled, monkeypatch):
    monkeypatch.setenv("RUNNEL_CACHE_SIZE", "0")
    (folder / "a.py").write_text("1")
    found = sources.__wrapped__()
    (folder / "a.py").write_text("2")
    assert sources.__wrapped__() != found


def test_versions_are_those_that_the_packages_declare():
    for package in ("numpy", "jax", "jaxlib", "ml_dtypes", "opt_einsum"):
        assert version_of(package) == metadata.version(package)
    assert version_of("no_package_of_this_name") == ""


def test_packages_are_found_by_how_their_names_begin():
    found = packages_named("jax", "numpy")
    assert {
        f"{name}-{metadata.version(name)}.dist-info" for name in ("jax", "jaxlib", "numpy")
    } <= {*found}
    assert packages_named("no_package_of_this_name") == []
