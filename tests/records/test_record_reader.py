"""Record files: what was written comes back; damage is reported with its place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.checkpoint.checksum import extend, masked
from runnel.records.framing import framed
from runnel.records.record_reader import RecordReader


def read_all(path):
    """The records up to the end or the damage, and the error if there was one."""
    found = []
    with RecordReader(path) as reader:
        try:
            for record in reader:
                found.append(record)
        except tf.errors.DataLossError as error:
            assert str(path) in error.message
            assert str(reader.offset) in error.message
            return found, error
    return found, None


@given(st.lists(st.binary(max_size=200), max_size=10))
@settings(deadline=None, max_examples=50)
def test_what_is_written_comes_back(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("records") / "file"
    path.write_bytes(b"".join(map(framed, records)))
    assert read_all(path) == (records, None)


def test_the_checksum_is_that_of_the_specification():
    """RFC 3720, B.4: 32 bytes of zeros."""
    assert extend(0, bytes(32)) == 0x8A9136AA


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_a_mutated_file_gives_the_records_before_the_damage(tmp_path_factory, data):
    records = data.draw(st.lists(st.binary(max_size=60), min_size=1, max_size=6))
    content = bytearray(b"".join(map(framed, records)))
    how = data.draw(st.sampled_from(["cut", "flip", "insert", "remove"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if how == "cut":
        del content[place:]
    elif how == "flip":
        content[place] ^= data.draw(st.integers(1, 255))
    elif how == "insert":
        content[place:place] = data.draw(st.binary(min_size=1, max_size=20))
    else:
        del content[place : place + data.draw(st.integers(1, 20))]
    starts = [0]
    for record in records:
        starts.append(starts[-1] + len(framed(record)))
    intact = sum(end <= place for end in starts[1:])
    path = tmp_path_factory.mktemp("records") / "file"
    path.write_bytes(content)
    found, error = read_all(path)
    assert found[:intact] == records[:intact]
    # Records are whole: never one that was not written.
    assert all(record in records for record in found)
    if how in ("cut", "flip"):
        assert found == records[:intact]
        assert (error is None) == (how == "cut" and place in starts)


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("records") / "file"
    path.write_bytes(content)
    found, error = read_all(path)
    assert error is not None or content == b"".join(map(framed, found))


def test_a_length_that_no_file_has_takes_no_memory(tmp_path):
    length = struct.pack("<Q", 2**62)
    path = tmp_path / "file"
    path.write_bytes(length + struct.pack("<I", masked(extend(0, length))) + b"x" * 100)
    found, error = read_all(path)
    assert found == [] and "truncated record at 0" in error.message


def test_reading_goes_on_where_a_file_has_grown(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(framed(b"one") + framed(b"two")[:7])
    with RecordReader(path) as reader:
        assert next(reader) == b"one"
        with pytest.raises(tf.errors.DataLossError, match="truncated"):
            next(reader)
        path.write_bytes(framed(b"one") + framed(b"two"))
        assert list(reader) == [b"two"]
        assert list(reader) == []
        with path.open("ab") as file:
            file.write(framed(b"three"))
        assert list(reader) == [b"three"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="none"):
        tf.train.summary_iterator(tmp_path / "none")


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_an_event_that_was_changed_is_read_or_refused(tmp_path_factory, data):
    """With a checksum that fits, so that only the message itself can tell."""
    event = tf.Event(step=7, wall_time=1.5)
    event.summary.value.add(tag="tag").histo.bucket.extend([1.0, 2.0])
    content = bytearray(event.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("records") / "file"
    path.write_bytes(framed(event.SerializeToString()) + framed(bytes(content)))
    events = tf.train.summary_iterator(path)
    assert next(events) == event
    try:
        assert isinstance(next(events), tf.Event)
    except tf.errors.DataLossError as error:
        assert str(path) in error.message


def test_a_record_that_is_no_event(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(framed(tf.Event(step=1).SerializeToString()) + framed(b"\xff\xff\xff"))
    events = tf.train.summary_iterator(path)
    assert next(events).step == 1
    with pytest.raises(tf.errors.DataLossError, match="is no Event"):
        next(events)
