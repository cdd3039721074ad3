"""Files in the format safetensors, read as checkpoints are."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.safetensors import _TYPES, SafetensorsReader


def build():
    made = {}
    for dtype in _TYPES.values():
        value = np.arange(6).reshape(2, 3).astype(dtype.np_dtype)
        made[dtype.name] = tf.get_variable(f"v/{dtype.name}", initializer=tf.constant(value))
    made["empty"] = tf.get_variable("empty", [0, 4])
    made["scalar"] = tf.get_variable("scalar", initializer=3.5)
    made["cut"] = tf.get_variable(
        "cut", [7, 3], partitioner=tf.fixed_size_partitioner(3), use_resource=True
    )
    return made


def test_variables_of_every_type_come_back(tmp_path):
    made = build()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.save_safetensors(sess, tmp_path / "m.safetensors", metadata={"a": "b"})
        before = sess.run(list(tf.global_variables()))
        whole = sess.run(made["cut"].as_tensor())
    np.testing.assert_array_equal(tf.train.load_variable(path, "cut"), whole)
    assert dict(tf.train.list_variables(path))["cut"] == [7, 3]
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, path)
        for variable, a, b in zip(
            tf.global_variables(), before, sess.run(list(tf.global_variables())), strict=True
        ):
            assert a.dtype == b.dtype, variable
            np.testing.assert_array_equal(a, b)


def test_the_bytes_are_those_of_the_format(tmp_path):
    """Read by hand, as the format's description has it."""
    a = tf.get_variable("a", initializer=np.float32([1.0, 2.0]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        names = {"x.weight": a, "flag": tf.get_variable("f", initializer=True)}
        sess.run(tf.global_variables_initializer())
        path = tf.train.save_safetensors(sess, tmp_path / "m.safetensors", names)
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert header["x.weight"]["dtype"] == "F32" and header["x.weight"]["shape"] == [2]
    begin, end = header["x.weight"]["data_offsets"]
    data = content[8 + length :]
    np.testing.assert_array_equal(np.frombuffer(data[begin:end], "<f4"), [1.0, 2.0])
    begin, end = header["flag"]["data_offsets"]
    assert data[begin:end] == b"\1"


def test_the_library_reads_and_writes_the_same(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6, dtype=np.float64).reshape(2, 3), "b": np.array([True, False])}
    library.save_file(arrays, tmp_path / "theirs.safetensors")
    for name, array in arrays.items():
        found = tf.train.load_variable(str(tmp_path / "theirs.safetensors"), name)
        np.testing.assert_array_equal(found, array)
    made = {name: tf.get_variable(name, initializer=array) for name, array in arrays.items()}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.save_safetensors(sess, tmp_path / "ours.safetensors", made)
    for name, array in library.load_file(path).items():
        np.testing.assert_array_equal(array, arrays[name])


def test_what_the_format_does_not_have_is_refused(tmp_path):
    tf.get_variable("s", initializer="text")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="'s' is string"):
            tf.train.save_safetensors(sess, tmp_path / "m.safetensors")
        with pytest.raises(ValueError, match="ends with .safetensors"):
            tf.train.save_safetensors(sess, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_file_that_does_not_fit_shows_the_difference(tmp_path):
    tf.get_variable("v", [2])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.save_safetensors(sess, tmp_path / "m.safetensors")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("other", [3])
        with pytest.raises(tf.errors.NotFoundError, match="other"):
            tf.train.Saver().restore(sess, path)


def file_of(header, data=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_one_tensor_of_an_unknown_type_does_not_spoil_the_others(tmp_path):
    path = tmp_path / "m.safetensors"
    small = {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [8, 11]}
    path.write_bytes(file_of({"a": ENTRY, "small": small}, np.float32([1, 2]).tobytes() + b"abc"))
    assert tf.train.list_variables(str(path)) == [("a", [2])]
    assert tf.train.load_variable(str(path), "a").tolist() == [1.0, 2.0]
    with pytest.raises(tf.errors.UnimplementedError, match="'small'.*F8_E4M3"):
        tf.train.load_variable(str(path), "small")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        b"\2\0\0\0\0\0\0\0[]",
        file_of({"a": ENTRY}),
        file_of({"a": ENTRY}, b"x" * 9),
        file_of({"a": ENTRY, "b": ENTRY}, b"x" * 8),
        file_of({"a": ENTRY | {"shape": [2**62, 2**62]}}, b"x" * 8),
        file_of({"a": ENTRY | {"shape": [-2, -1]}}, b"x" * 8),
        file_of({"a": ENTRY | {"data_offsets": [8, 16]}}, b"x" * 16),
        file_of({"a": ENTRY | {"data_offsets": [0]}}, b"x" * 8),
        file_of({"a": 3}),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match="m.safetensors"):
        SafetensorsReader(str(path))


def test_changed_bytes_are_refused_or_read_within_the_file(tmp_path):
    path = tmp_path / "m.safetensors"
    entries = {"a": ENTRY, "b": {"dtype": "I8", "shape": [3, 1], "data_offsets": [8, 11]}}
    content = file_of(entries, bytes(11))
    chance = random.Random(3)
    for _ in range(500):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 2, 5])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            reader = SafetensorsReader(str(path))
            assert sum(reader.tensor(name).nbytes for name in reader.names()) <= 11
        except tf.errors.DataLossError:
            pass
