"""Operations touch no file outside of the folder that a process was given."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "file").write_text("content")
    monkeypatch.setenv("RUNNEL_FILES", str(inside))
    return inside


OUTSIDE = [
    "{0}/../secret",
    "../secret",
    "link",
    "/etc/hostname",
    "file:///etc/hostname",
    "s3://x/y",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out(path, folder):
    path = path.format(folder)
    v = tf.Variable([1.0, 2.0], name="v")
    written = tf.train.Saver([v]).saver_def
    operations = [
        tf.read_file(path),
        tf.write_file(path, "x"),
        tf.print("x", output_stream=f"file://{path.removeprefix('file://')}"),
    ]
    with tf.Session() as sess:
        sess.run(v.initializer)
        for operation in operations:
            with pytest.raises(tf.errors.PermissionDeniedError, match="outside"):
                sess.run(operation)
        for checkpoint in (f"{path}-ckpt", path) if path != "link" else (path,):
            fed = {written.filename_tensor_name: checkpoint}
            for name in (written.save_tensor_name, written.restore_op_name):
                with pytest.raises(tf.errors.PermissionDeniedError, match="outside"):
                    sess.run(name, fed)
    assert (folder.parent / "secret").read_text() == "secret"


def test_what_is_inside_is_as_ever(folder):
    v = tf.Variable([1.0, 2.0], name="v")
    saver = tf.train.Saver([v])
    with tf.Session() as sess:
        assert sess.run(tf.read_file("file")) == b"content"  # relative to the folder
        assert sess.run(tf.read_file(str(folder / "file"))) == b"content"
        sess.run(v.initializer)
        path = saver.save(sess, str(folder / "model"))
        sess.run(v.assign([0.0, 0.0]))
        saver.restore(sess, path)
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])
