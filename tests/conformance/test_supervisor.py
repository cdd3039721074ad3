"""``tf.train.Supervisor``: the same program under both systems."""

from __future__ import annotations

import threading

import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

BOTH = pytest.mark.parametrize("lib", [tf, reference], ids=["runnel", "tensorflow"])


def counting(lib, limit=None):
    """A graph whose training step counts; its queue ends after ``limit`` elements."""
    step = lib.train.get_or_create_global_step()
    waits = []
    if limit is not None:
        [element] = lib.train.slice_input_producer(
            [list(range(limit))], shuffle=False, num_epochs=1
        )
        waits = [element]
    lib.summary.scalar("twice", step * 2)
    with lib.control_dependencies(waits):
        return lib.assign_add(step, 1)


def tags(folder):
    found = set()
    for path in folder.glob("events.*"):
        for event in tf.train.summary_iterator(str(path)):
            found |= {value.tag for value in event.summary.value}
            if event.HasField("session_log"):
                found.add(event.session_log.status)
            if event.graph_def:
                found.add("graph")
    return found


@BOTH
def test_a_job_goes_on_from_its_checkpoint(lib, tmp_path):
    for run in (1, 2):
        with lib.Graph().as_default():
            train = counting(lib)
            sv = lib.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
            with sv.managed_session() as sess:
                while not sv.should_stop():
                    if sess.run(train) == 5 * run:
                        sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
                        sv.request_stop()
    assert lib.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-10")
    assert (tmp_path / "graph.pbtxt").exists()


@BOTH
def test_its_threads_save_and_summarize(lib, tmp_path):
    with lib.Graph().as_default():
        train = counting(lib)
        sv = lib.train.Supervisor(logdir=str(tmp_path), save_model_secs=1, save_summaries_secs=1)
        with sv.managed_session() as sess:
            waited = threading.Event()
            for _ in range(600):
                sess.run(train)
                saved = lib.train.latest_checkpoint(str(tmp_path))
                sv.summary_writer.flush()
                if saved and {"twice", "global_step/sec"} <= tags(tmp_path):
                    break
                waited.wait(0.1)
    found = tags(tmp_path)
    start, stop, checkpoint = 1, 2, 3
    assert {"twice", "global_step/sec", "graph", start, stop, checkpoint} <= found


@BOTH
def test_the_end_of_the_input_ends_the_block(lib, tmp_path):
    with lib.Graph().as_default():
        train = counting(lib, limit=7)
        sv = lib.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
        steps = []
        with sv.managed_session() as sess:
            while not sv.should_stop():
                steps.append(int(sess.run(train)))
    assert steps == [1, 2, 3, 4, 5, 6, 7]


@BOTH
def test_an_error_is_raised_when_the_block_ends(lib, tmp_path):
    with lib.Graph().as_default():
        counting(lib)
        sv = lib.train.Supervisor(logdir=str(tmp_path))
        with pytest.raises(ZeroDivisionError), sv.managed_session():
            sv.loop(None, lambda: 1 / 0)
            sv.wait_for_stop()


@BOTH
def test_a_lost_session_is_made_anew(lib, tmp_path):
    lost = []
    with lib.Graph().as_default():
        train = counting(lib)
        sv = lib.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)

        def step(sess, last):
            count = sess.run(train)
            if count == 3 and not lost:
                sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
                lost.append(True)
                raise lib.errors.AbortedError(None, None, "gone")
            if count == last:
                sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
                sv.request_stop()

        lib.train.basic_train_loop(sv, step, args=[6])
    assert lost and lib.train.latest_checkpoint(str(tmp_path)).endswith("ckpt-6")


@BOTH
def test_a_worker_needs_devices_for_its_variables(lib):
    with lib.Graph().as_default():
        counting(lib)
        with pytest.raises(ValueError, match="must have their device set"):
            lib.train.Supervisor(is_chief=False)


@BOTH
def test_the_graph_is_final(lib):
    with lib.Graph().as_default():
        counting(lib)
        lib.train.Supervisor()
        with pytest.raises(RuntimeError):
            lib.constant(1)
