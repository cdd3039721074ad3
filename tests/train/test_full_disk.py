"""A disk that is full at any instant leaves the newest complete checkpoint, named as the latest."""

from __future__ import annotations

import itertools
import shutil

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.reading import open_checkpoint
from tests.train.full_disk import FullDisk

V1, V2 = 1, 2


def program(version: int, sharded: bool) -> tuple[tf.Tensor, tf.train.Saver, tf.Operation]:
    """A step's number and rows that all have it, as variables of two devices; one more step."""
    with tf.device("/cpu:0"):
        step = tf.Variable(0, name="step")
    with tf.device("/cpu:1"):
        rows = tf.Variable(np.zeros(300), name="rows")
    saver = tf.train.Saver(max_to_keep=1, write_version=version, sharded=sharded)
    ones = tf.ones([300], tf.float64)
    return step, saver, tf.group(step.assign_add(1), rows.assign_add(ones))


def restart(saver: tf.train.Saver, sess: tf.Session, folder: str) -> int:
    """Restores what is named as the latest, and checks that it is of one step."""
    latest = tf.train.latest_checkpoint(folder)
    assert latest is not None
    saver.restore(sess, latest)
    reader = open_checkpoint(latest)
    assert (reader.tensor("rows") == reader.tensor("step")).all()
    return int(reader.tensor("step"))


@pytest.mark.parametrize("stays_full", [False, True])
@pytest.mark.parametrize(
    ("version", "sharded", "background"),
    [
        (V2, False, False),
        (V2, True, False),
        (V2, True, True),
        (V1, False, False),
        (V1, True, False),
    ],
)
def test_whichever_change_fails_a_complete_checkpoint_is_the_latest(
    tmp_path, version, sharded, background, stays_full
):
    step, saver, advance = program(version, sharded)
    folder = tmp_path / "model"
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Session(config=config) as sess:

        def save() -> None:
            method = saver.save_in_background if background else saver.save
            done = method(sess, str(folder / "m"), global_step=step)
            if background:
                done.wait()

        for fails_at in itertools.count():
            shutil.rmtree(folder, ignore_errors=True)
            saver.set_last_checkpoints([])
            sess.run(tf.global_variables_initializer())
            save()
            disk, saved = FullDisk(folder, fails_at, stays_full), 0
            with disk:
                for _ in range(2):
                    sess.run(advance)
                    try:
                        save()
                        saved = int(sess.run(step))
                    except (OSError, tf.errors.ResourceExhaustedError) as error:
                        assert "No space left" in str(error)
            assert restart(saver, sess, str(folder)) == saved
            there = {path.name for path in folder.iterdir()}
            sess.run(advance)
            save()  # there is room again
            assert restart(saver, sess, str(folder)) == saved + 1
            kept = [path for path in there if "temp" in path or path.startswith(f"m-{saved + 1}")]
            assert not kept, "what failed took no room"
            if fails_at == len(disk.changes):
                break
    assert saved == 2 and fails_at > 8, "each change has failed once, and now none did"


def test_a_full_disk_is_an_error_of_its_kind(tmp_path):
    step, saver, _ = program(V2, sharded=False)
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Session(config=config) as sess, FullDisk(tmp_path, 0, stays_full=True):
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left on device"):
            saver.save(sess, str(tmp_path / "m"))


def test_a_checkpoint_that_is_replaced_stays_until_the_new_one_is_there(tmp_path):
    step, saver, advance = program(V2, sharded=False)
    path = str(tmp_path / "m")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        for fails_at in itertools.count():
            sess.run(tf.global_variables_initializer())
            saver.save(sess, path)
            sess.run(advance)
            with FullDisk(tmp_path, fails_at, stays_full=True) as disk:
                try:
                    saver.save(sess, path)
                except (OSError, tf.errors.ResourceExhaustedError):
                    found = open_checkpoint(path)
                    assert (found.tensor("rows") == found.tensor("step")).all()
                    continue
            assert int(open_checkpoint(path).tensor("step")) == 1
            break
    assert len(disk.changes) > 4
