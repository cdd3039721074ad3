"""Checkpoints written in the background: what one step has read, whatever steps do meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint import bundle, whole_file
from runnel.train import background_save
from tests.both_tiers import COMPILED, INTERPRETED, session


@pytest.fixture
def held(monkeypatch):
    """Has writing wait until it is told to go on."""
    go_on = threading.Event()
    write = background_save.write_tensors

    def waiting(*arguments):
        assert go_on.wait(60)
        write(*arguments)

    monkeypatch.setattr(background_save, "write_tensors", waiting)
    yield go_on
    go_on.set()


def model(sharded=False):
    w = tf.get_variable("w", initializer=np.zeros((50, 3), np.float32))
    r = tf.get_variable("r", initializer=np.int64(0), use_resource=True)
    p = tf.get_variable("p", [6, 2], partitioner=tf.fixed_size_partitioner(3))
    train = tf.group(tf.assign_add(w, tf.ones_like(w)), r.assign_add(1))
    return w, r, p, train, tf.train.Saver(sharded=sharded, max_to_keep=2)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("sharded", [False, True])
def test_steps_that_follow_do_not_change_what_is_written(tmp_path, held, level, sharded):
    w, r, p, train, saver = model(sharded)
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(train)
        parts = sess.run(p.as_tensor())
        saving = saver.save_in_background(sess, tmp_path / "m", global_step=r)
        for _ in range(5):
            sess.run(train)
        assert not saving.done()
        assert tf.train.latest_checkpoint(tmp_path) is None
        with pytest.raises(TimeoutError):
            saving.wait(0)
        held.set()
        path = saving.wait()
        assert path == str(tmp_path / "m-5") == tf.train.latest_checkpoint(tmp_path)
        assert sess.run(r) == 10
        saver.restore(sess, path)
        assert sess.run(r) == 5 and (sess.run(w) == 5.0).all()
        np.testing.assert_array_equal(sess.run(p.as_tensor()), parts)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(f"{path}.meta").restore(sess, path)
        [count] = [v for v in tf.global_variables() if v.op.name == "r"]
        assert sess.run(count) == 5


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("place", ["a tensor", "the index", "the disk"])
def test_steps_run_while_a_save_is_in_the_middle_of(tmp_path, monkeypatch, place, level):
    """Whatever it is about, it holds nothing that a step needs."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(*_):
        reached.set()
        assert go_on.wait(60)

    if place == "the disk":
        monkeypatch.setattr(whole_file.os, "fsync", hold)
    elif place == "a tensor":
        monkeypatch.setattr(background_save.LettingStepsGoOn, "__call__", hold)
    else:
        write_index = bundle.write_index
        monkeypatch.setattr(bundle, "write_index", lambda *given: [hold(), write_index(*given)])
    w, r, _, train, saver = model()
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        saving = saver.save_in_background(sess, tmp_path / "m")
        try:
            assert reached.wait(60)
            for _ in range(3):
                sess.run(train)
            assert sess.run(r) == 4 and not saving.done()
        finally:
            go_on.set()
            monkeypatch.undo()
        saver.restore(sess, saving.wait())
        assert sess.run(r) == 1 and (sess.run(w) == 1.0).all()


def test_a_graph_that_grows_meanwhile_is_written_as_it_was(tmp_path, held):
    *_, saver = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        saving = saver.save_in_background(sess, tmp_path / "m")
        tf.identity(1.0, name="later")
        held.set()
        saving.wait()
    from runnel.train.meta_graph import read_meta_graph_file

    nodes = {node.name for node in read_meta_graph_file(tmp_path / "m.meta").graph_def.node}
    assert "w" in nodes and "later" not in nodes


def test_what_went_wrong_is_raised_once_by_waiting_or_by_the_next_save(tmp_path):
    *_, saver = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        (tmp_path / "file").write_text("")
        saving = saver.save_in_background(sess, tmp_path / "file" / "m")
        with pytest.raises(OSError):
            saving.wait()
        assert saver.save(sess, tmp_path / "m") == str(tmp_path / "m")
        saver.save_in_background(sess, tmp_path / "file" / "m")
        with pytest.raises(OSError):
            saver.save(sess, tmp_path / "m")
        assert saver.save(sess, tmp_path / "m") == str(tmp_path / "m")


@pytest.mark.parametrize("version", [tf.train.SaverDef.V1, tf.train.SaverDef.V2])
def test_old_checkpoints_are_removed(tmp_path, version):
    _, r, _, train, _ = model()
    saver = tf.train.Saver(max_to_keep=2, write_version=version)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            sess.run(train)
            saver.save_in_background(sess, tmp_path / "m", global_step=r)
        saver.save(sess, tmp_path / "m", global_step=5)
    pattern = "m-?.index" if version == tf.train.SaverDef.V2 else "m-?"
    assert sorted(path.name[:3] for path in tmp_path.glob(pattern)) == ["m-4", "m-5"]
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "m-5")


def test_a_saver_that_was_imported_saves_in_the_background_too(tmp_path):
    *_, saver = model(sharded=True)
    meta = saver.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as sess:
        imported = tf.train.import_meta_graph(meta)
        sess.run(tf.global_variables_initializer())
        path = imported.save_in_background(sess, tmp_path / "m").wait()
        assert [name for name, _ in tf.train.list_variables(path)] == ["p", "r", "w"]


def test_the_hook_of_a_monitored_session_saves_in_the_background(tmp_path):
    class Listener(tf.train.CheckpointSaverListener):
        calls: list[tuple[str, int]] = []

        def before_save(self, session, global_step_value):
            self.calls.append(("before", global_step_value))

        def after_save(self, session, global_step_value):
            saved = tmp_path / f"model.ckpt-{global_step_value}.index"
            assert saved.exists()
            self.calls.append(("after", global_step_value))

    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    listener = Listener()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path),
        save_steps=2,
        listeners=[listener],
        save_in_background=True,
        scaffold=(scaffold := tf.train.Scaffold()),
    )
    creator = tf.train.ChiefSessionCreator(scaffold)
    stop = tf.train.StopAtStepHook(last_step=5)
    with tf.train.MonitoredSession(creator, hooks=[hook, stop]) as sess:
        while not sess.should_stop():
            sess.run(train)
    tf.summary.FileWriterCache.clear()
    expected = [(what, n) for n in (0, 2, 4, 5) for what in ("before", "after")]
    assert listener.calls == expected
    assert tf.train.latest_checkpoint(tmp_path).endswith("ckpt-5")
