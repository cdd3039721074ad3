"""Record files and examples are TensorFlow's: each system reads what the other wrote."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import runnel

reference = pytest.importorskip("tensorflow").compat.v1

RNG = np.random.default_rng(0)
RECORDS = [b"", b"a", RNG.bytes(1000), RNG.bytes(300_000), b"x" * 70_000]
OPTIONS = [None, "ZLIB", "GZIP", "best", "kind"]


def options(tf, which):
    io = tf.python_io
    if which == "best":
        return io.TFRecordOptions("GZIP", compression_level=9, mem_level=9, window_bits=30)
    if which == "kind":
        return io.TFRecordOptions(io.TFRecordCompressionType.ZLIB)
    return which


def write(tf, path, which):
    with tf.python_io.TFRecordWriter(str(path), options(tf, which)) as writer:
        for record in RECORDS:
            writer.write(record)
        writer.flush()


def read(tf, path, which):
    kind = tf.python_io.TFRecordOptions.get_compression_type_string(options(tf, which))
    kinds = tf.python_io.TFRecordCompressionType
    number = {"": kinds.NONE, "ZLIB": kinds.ZLIB, "GZIP": kinds.GZIP}[kind]
    return list(tf.python_io.tf_record_iterator(str(path), tf.python_io.TFRecordOptions(number)))


@pytest.mark.parametrize("which", OPTIONS)
def test_each_reads_what_the_other_wrote(tmp_path, which):
    for tf in (runnel, reference):
        write(tf, tmp_path / "file", which)
        assert read(runnel, tmp_path / "file", which) == RECORDS
        assert read(reference, tmp_path / "file", which) == RECORDS


def test_an_uncompressed_file_is_byte_for_byte_tensorflows(tmp_path):
    for tf, name in ((runnel, "ours"), (reference, "theirs")):
        write(tf, tmp_path / name, None)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize("which", [None, "ZLIB", "GZIP"])
@pytest.mark.parametrize("how", ["cut", "flip"])
def test_damage_loses_nothing_before_it(tmp_path, which, how):
    path = tmp_path / "file"
    with runnel.python_io.TFRecordWriter(path, which) as writer:
        for i in range(200):
            writer.write(RNG.bytes(50) + str(i).encode())
            writer.flush()
    whole = list(runnel.python_io.tf_record_iterator(path, which))
    content = bytearray(path.read_bytes())
    place = len(content) * 2 // 3
    if how == "cut":
        del content[place:]
    else:
        content[place] ^= 0xFF
    path.write_bytes(content)
    found = []
    with pytest.raises(runnel.errors.DataLossError, match=f"{path}.*record at"):
        for record in runnel.python_io.tf_record_iterator(path, which):
            found.append(record)
    assert found == whole[: len(found)] and len(found) >= 130


def test_a_closed_writer_and_a_missing_file_are_refused_alike(tmp_path):
    for tf in (runnel, reference):
        writer = tf.python_io.TFRecordWriter(str(tmp_path / "file"))
        writer.close()
        with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
            writer.write(b"x")
        with pytest.raises(tf.errors.NotFoundError):
            list(tf.python_io.tf_record_iterator(str(tmp_path / "none")))
        with pytest.raises(ValueError, match="compression_type"):
            tf.python_io.TFRecordWriter(str(tmp_path / "file"), "LZMA")


def test_gzip_members_that_follow_each_other_are_one_file(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        with runnel.python_io.TFRecordWriter(path, "GZIP") as writer:
            writer.write(path.name.encode())
    both = tmp_path / "both"
    both.write_bytes(first.read_bytes() + second.read_bytes())
    assert list(runnel.python_io.tf_record_iterator(both, "GZIP")) == [b"first", b"second"]
    assert zlib.decompressobj(31).decompress(first.read_bytes())


def example(tf):
    train = tf.train
    return train.Example(
        features=train.Features(
            feature={
                "floats": train.Feature(float_list=train.FloatList(value=[1.5, -2])),
                "ints": train.Feature(int64_list=train.Int64List(value=[1, -2, 2**62])),
                "bytes": train.Feature(bytes_list=train.BytesList(value=[b"a", b"\xff"])),
                "empty": train.Feature(),
            }
        )
    )


def sequence(tf):
    train = tf.train
    items = [train.Feature(int64_list=train.Int64List(value=[i] * i)) for i in range(3)]
    return train.SequenceExample(
        context=example(tf).features,
        feature_lists=train.FeatureLists(feature_list={"x": train.FeatureList(feature=items)}),
    )


@pytest.mark.parametrize("make", [example, sequence])
def test_messages_travel(make):
    ours, theirs = make(runnel), make(reference)
    assert str(ours) == str(theirs)
    assert type(ours).FromString(theirs.SerializeToString()) == ours
    assert type(theirs).FromString(ours.SerializeToString()) == theirs


SMALL = [RNG.bytes(n) for n in (0, 5, 100, 300)] * 6


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
@pytest.mark.parametrize("mode", [None, zlib.Z_PARTIAL_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH])
@pytest.mark.parametrize("buffer", [None, 250, 1000])
def test_what_is_flushed_when_decides_what_can_be_read_of_an_open_file(
    tmp_path, kind, mode, buffer
):
    """What TensorFlow can read of a file that its writer has not closed is what it can of ours."""
    readable = []
    for tf in (runnel, reference):
        options = tf.python_io.TFRecordOptions(kind, flush_mode=mode, input_buffer_size=buffer)
        writer = tf.python_io.TFRecordWriter(str(tmp_path / tf.__name__), options)
        for record in SMALL:
            writer.write(record)
        writer.flush()
        content = (tmp_path / tf.__name__).read_bytes()
        stream = zlib.decompressobj(31 if kind == "GZIP" else 15)
        readable.append(stream.decompress(content))
        writer.close()
        assert read(runnel, tmp_path / tf.__name__, kind) == SMALL
        assert read(reference, tmp_path / tf.__name__, kind) == SMALL
    assert readable[0] == readable[1]
    assert len(readable[0]) == sum(len(record) + 16 for record in SMALL)


@pytest.mark.parametrize("mode", [zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH])
def test_flushes_stand_where_tensorflow_has_them(tmp_path, mode):
    """Full blocks end with an empty stored one, which leaves its mark in the file."""
    marks = []
    for tf in (runnel, reference):
        options = tf.python_io.TFRecordOptions("ZLIB", flush_mode=mode, input_buffer_size=250)
        with tf.python_io.TFRecordWriter(str(tmp_path / tf.__name__), options) as writer:
            for record in SMALL:
                writer.write(record)
        marks.append((tmp_path / tf.__name__).read_bytes().count(b"\x00\x00\xff\xff"))
    assert marks[0] == marks[1] > 0


def test_records_are_read_by_their_offsets_as_tensorflow_does(tmp_path):
    from tensorflow.python.lib.io.tf_record import tf_record_random_reader

    path = str(tmp_path / "file")
    write(runnel, path, None)
    with runnel.python_io.tf_record_random_reader(path) as ours:
        theirs = tf_record_random_reader(path)
        offsets = [0]
        for record in RECORDS:
            found = ours.read(offsets[-1])
            assert found == theirs.read(offsets[-1]) == (record, found[1])
            offsets.append(found[1])
        for number in (3, 0, 2, 1):
            assert ours.read(offsets[number]) == theirs.read(offsets[number])
        for reader in (ours, theirs):
            with pytest.raises(IndexError):
                reader.read(offsets[-1])
        with pytest.raises(runnel.errors.DataLossError, match="record at 3"):
            ours.read(3)


@pytest.mark.parametrize("where", ["length", "length checksum", "data", "data checksum"])
def test_single_damaged_records_are_left_out_if_asked_for(tmp_path, where, caplog):
    path = tmp_path / "file"
    records = [b"record %d " % i * 5 for i in range(20)]
    starts = []
    with runnel.python_io.TFRecordWriter(path) as writer:
        at = 0
        for record in records:
            starts.append(at)
            at += len(record) + 16
            writer.write(record)
    content = bytearray(path.read_bytes())
    behind = {
        "length": 1,
        "length checksum": 9,
        "data": 20,
        "data checksum": 12 + len(records[3]) + 1,
    }
    content[starts[3] + behind[where]] ^= 0x10
    content[starts[9] + behind["data"]] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(runnel.errors.DataLossError):
        list(runnel.python_io.tf_record_iterator(path))
    found = list(runnel.python_io.tf_record_iterator(path, skip_damaged=True))
    assert found == [record for i, record in enumerate(records) if i not in (3, 9)]
    assert sum("left out" in line.getMessage() for line in caplog.records) == 2


def test_a_cut_file_gives_what_is_whole(tmp_path):
    path = tmp_path / "file"
    write(runnel, path, None)
    path.write_bytes(path.read_bytes()[:-3])
    found = list(runnel.python_io.tf_record_iterator(path, skip_damaged=True))
    assert found == RECORDS[:-1]
