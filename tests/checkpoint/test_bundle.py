"""Bundles: what is written is read; what is damaged is told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runnel.checkpoint.bundle import BundleReader, BundleWriter, data_file, index_file, merge
from runnel.checkpoint.tensor_slice import TensorSlice, parse_shape_and_slice
from runnel.graph import dtypes
from runnel.graph.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError

fuzz = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TYPES = [
    *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.bool_),
    *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16),
    *(dtypes.uint32, dtypes.uint64, dtypes.complex64, dtypes.complex128, dtypes.string),
]


def values(dtype, shape):
    rng = np.random.default_rng(3)
    if dtype is dtypes.string:
        flat = [rng.bytes(int(n)) for n in rng.integers(0, 300, int(np.prod(shape)))]
        found = np.empty(len(flat), object)
        found[:] = flat
        return found.reshape(shape)
    return (rng.normal(size=shape) * 50).astype(dtype.np_dtype)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (5, 7)], ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_what_is_written_is_read(tmp_path, dtype, shape):
    array = values(dtype, shape)
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        writer.add("other", np.float32(1), dtypes.float32)
        writer.add("name/of it", array, dtype)
    reader = BundleReader(prefix)
    assert reader.names() == ["name/of it", "other"]
    assert reader.type_and_shape("name/of it") == (dtype, shape)
    found = reader.tensor("name/of it")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_many_names_fill_several_blocks(tmp_path):
    names = [f"layer_{n}/" + "w" * (n % 90) for n in range(6000)]
    with BundleWriter(str(tmp_path / "m")) as writer:
        for n, name in enumerate(names):
            writer.add(name, np.int32(n), dtypes.int32)
    reader = BundleReader(str(tmp_path / "m"))
    assert reader.names() == sorted(names)
    assert [int(reader.tensor(name)) for name in names[::500]] == list(range(0, 6000, 500))


@given(st.data())
@settings(fuzz, max_examples=40)
def test_any_slice_is_read_of_any_partition(tmp_path, data):
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5))
    whole = np.arange(rows * columns).reshape(rows, columns)
    cuts = sorted(data.draw(st.sets(st.integers(1, rows), max_size=4)) | {0, rows})
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        for start, stop in zip(cuts, cuts[1:], strict=False):
            part = TensorSlice(((start, stop - start), (0, None)))
            writer.add_slice("v", whole.shape, part, whole[start:stop], dtypes.int64)
    reader = BundleReader(prefix)
    np.testing.assert_array_equal(reader.tensor("v"), whole)
    first = data.draw(st.integers(0, rows - 1))
    last = data.draw(st.integers(first + 1, rows))
    left = data.draw(st.integers(0, columns - 1))
    wanted = TensorSlice(((first, last - first), (left, columns - left)))
    np.testing.assert_array_equal(reader.slice("v", wanted), whole[first:last, left:])


def test_a_missing_slice_is_told(tmp_path):
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add_slice("v", (4,), TensorSlice.parse("0,2"), np.zeros(2), dtypes.float64)
    with pytest.raises(InvalidArgumentError, match="2 of the 4 elements"):
        BundleReader(prefix).tensor("v")


@pytest.mark.parametrize("text", ["0", "1,0", "a,b", "-1,2", "0,2:"])
def test_what_is_no_slice_is_told(text):
    with pytest.raises(ValueError, match="is not a slice"):
        TensorSlice.parse(text)


@pytest.mark.parametrize("text", ["4 0,5", "4 5 0,2", "x 0,1"])
def test_a_slice_that_does_not_fit_its_shape_is_told(text):
    with pytest.raises(ValueError, match="slice"):
        parse_shape_and_slice(text)


def test_merged_bundles_are_one(tmp_path):
    for shard in range(3):
        with BundleWriter(str(tmp_path / "tmp" / f"part{shard}")) as writer:
            writer.add(f"v{shard}", np.float32(shard), dtypes.float32)
            part = TensorSlice.parse(f"{2 * shard},2")
            writer.add_slice("cut", (6,), part, np.arange(2) + 2 * shard, dtypes.int64)
    target = str(tmp_path / "whole")
    merge([str(tmp_path / "tmp" / f"part{shard}") for shard in range(3)], target)
    reader = BundleReader(target)
    assert reader.shards == 3
    assert [float(reader.tensor(f"v{shard}")) for shard in range(3)] == [0, 1, 2]
    np.testing.assert_array_equal(reader.tensor("cut"), np.arange(6))
    assert list((tmp_path / "tmp").iterdir()) == []


# Replacing and failing --------------------------------------------------------------------------


def write(prefix, value):
    with BundleWriter(prefix) as writer:
        writer.add("v", np.full(1000, value), dtypes.int64)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_until_the_new_index_is_there_the_old_bundle_is_readable(tmp_path, monkeypatch, times):
    prefix = str(tmp_path / "m")
    for n in range(times):
        write(prefix, n)
    replace = os.replace
    seen = []

    def check_and_replace(source, target):
        seen.append(int(BundleReader(prefix).tensor("v")[0]))
        replace(source, target)
        seen.append(int(BundleReader(prefix).tensor("v")[0]))

    monkeypatch.setattr(os, "replace", check_and_replace)
    write(prefix, 100)
    old = times - 1
    assert seen == [old, old, old, 100], "data appear, then the index"
    assert len(list(tmp_path.iterdir())) == 2, "what is old is gone"


def test_a_failed_write_leaves_what_was_there(tmp_path):
    prefix = str(tmp_path / "m")
    write(prefix, 1)
    with pytest.raises(ZeroDivisionError), BundleWriter(prefix) as writer:
        writer.add("v", np.full(1000, 2), dtypes.int64)
        raise ZeroDivisionError
    assert BundleReader(prefix).tensor("v")[0] == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_what_was_there(tmp_path):
    """A file system without room says so in ``write``; this one is a device that is always full."""
    prefix = str(tmp_path / "m")
    write(prefix, 1)
    with (
        pytest.raises(OSError, match="No space left"),
        BundleWriter(prefix) as writer,
        open("/dev/full", "wb", buffering=0) as full,
    ):
        writer._file = full
        writer.add("v", np.full(1000, 2), dtypes.int64)
    assert BundleReader(prefix).tensor("v")[0] == 1


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(NotFoundError, match="There is no checkpoint"):
        BundleReader(str(tmp_path / "m"))
    write(str(tmp_path / "m"), 1)
    with pytest.raises(NotFoundError, match="no tensor 'w'"):
        BundleReader(str(tmp_path / "m")).tensor("w")
    os.unlink(data_file(str(tmp_path / "m"), 0, 1))
    with pytest.raises(DataLossError, match="incomplete"):
        BundleReader(str(tmp_path / "m")).tensor("v")


def read_all(prefix):
    reader = BundleReader(prefix)
    return {name: reader.tensor(name) for name in reader.names()}


@given(st.data())
@settings(fuzz, max_examples=300)
def test_damage_is_an_error_of_ours_or_harmless(tmp_path, data):
    """Bytes changed, cut off or added anywhere: an error, or the values that were written."""
    prefix = str(tmp_path / "m")
    written = {"a": np.arange(50.0), "s": values(dtypes.string, (4,)), "v": np.arange(6)}
    with BundleWriter(prefix) as writer:
        writer.add("a", written["a"], dtypes.float64)
        writer.add("s", written["s"], dtypes.string)
        for start in (0, 3):
            part = TensorSlice.parse(f"{start},3")
            writer.add_slice("v", (6,), part, written["v"][start : start + 3], dtypes.int64)
    [index] = tmp_path.glob("*.index")
    [content] = tmp_path.glob("*.data-*")
    path = data.draw(st.sampled_from([index, content]))
    whole = bytearray(path.read_bytes())
    how = data.draw(st.sampled_from(["flip", "cut", "insert", "zero"]))
    place = data.draw(st.integers(0, len(whole) - 1))
    if how == "flip":
        whole[place] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del whole[place:]
    elif how == "insert":
        whole[place:place] = data.draw(st.binary(min_size=1, max_size=40))
    else:
        whole[place : place + 16] = bytes(len(whole[place : place + 16]))
    path.write_bytes(bytes(whole))
    try:
        found = read_all(prefix)
    except OpError:
        return
    finally:
        for file in tmp_path.iterdir():
            file.unlink()
    for name, array in found.items():
        np.testing.assert_array_equal(array, written[name])


@given(st.binary(max_size=200))
@fuzz
def test_what_is_no_table_is_an_error_of_ours(tmp_path, content):
    Path(index_file(str(tmp_path / "m"))).write_bytes(content)
    with pytest.raises(OpError):
        read_all(str(tmp_path / "m"))


def test_slices_that_overlap_where_another_is_missing_are_told(tmp_path):
    """As many elements as there should be, but not those."""
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        for text in ("0,3", "3,3"):
            writer.add_slice("v", (6,), TensorSlice.parse(text), np.arange(3), dtypes.int64)
        entry = writer._entries[b"v"]
        entry.slices[1].CopyFrom(entry.slices[0])
    with pytest.raises(OpError, match="twice"):
        BundleReader(prefix).tensor("v")


@pytest.mark.parametrize("shape", [(0, 1 << 62), (1,) * 65, (-1, -1)])
def test_a_shape_that_no_array_can_have_is_told(tmp_path, shape):
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add("v", np.zeros((0,)), dtypes.float64)
        del writer._entries[b"v"].shape.dim[:]
        for size in shape:
            writer._entries[b"v"].shape.dim.add(size=size)
    with pytest.raises(DataLossError, match="its shape is"):
        BundleReader(prefix).tensor("v")


@pytest.mark.parametrize("number", [20, 101, 0, 77])
def test_a_type_that_no_checkpoint_has_is_told(tmp_path, number):
    """A resource, a variant, a reference, and numbers that mean nothing."""
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add("v", np.zeros(1), dtypes.float64)
        writer._entries[b"v"].dtype = number
    with pytest.raises(DataLossError, match="its type is"):
        BundleReader(prefix).tensor("v")
