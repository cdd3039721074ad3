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
