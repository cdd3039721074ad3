"""Checkpoints of a cluster: each task writes its own part, all at once, and one is made of them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.bundle import BundleReader
from runnel.ops import checkpoints
from tests.distributed.clusters import servers


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=2, worker=1) as found:
        yield found


def variables():
    """One variable on each parameter server, and one in parts on both."""
    with tf.device("/job:ps/task:0"):
        a = tf.get_variable("a", initializer=np.arange(4.0))
    with tf.device("/job:ps/task:1"):
        b = tf.get_variable("b", initializer=np.arange(3.0) + 10)
    with tf.device(tf.train.replica_device_setter(2)):
        parted = tf.get_variable(
            "parted",
            [4, 2],
            initializer=tf.constant_initializer(5.0),
            partitioner=tf.fixed_size_partitioner(2),
        )
    return a, b, parted


def test_each_task_writes_its_variables_while_the_others_do(cluster, tmp_path, monkeypatch):
    a, b, parted = variables()
    saver = tf.train.Saver(sharded=True)
    meet = threading.Barrier(2, timeout=60)
    writer = checkpoints.BundleWriter

    def meeting(prefix):
        meet.wait()  # which fails, if they write one after the other
        return writer(prefix)

    monkeypatch.setattr(checkpoints, "BundleWriter", meeting)
    metadata = tf.RunMetadata()
    with tf.Session(cluster["worker0"].target) as sess:
        sess.run(tf.global_variables_initializer())
        given = {saver.saver_def.filename_tensor_name: str(tmp_path / "m")}
        trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(saver.saver_def.save_tensor_name, given, trace, metadata)
        path = str(tmp_path / "m")
        sess.run([a.assign(tf.zeros_like(a)), b.assign(tf.zeros_like(b))])
        saver.restore(sess, path)
        np.testing.assert_array_equal(sess.run(a), np.arange(4.0))
        np.testing.assert_array_equal(sess.run(b), np.arange(3.0) + 10)
    ran = {
        node.node_name: device.device
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    }
    saves = {name: device for name, device in ran.items() if name.startswith("save/SaveV2")}
    tasks = sorted(device.partition("/device")[0][-6:] for device in saves.values())
    assert tasks == ["task:0", "task:1"] and all("/job:ps" in d for d in saves.values())
    assert "/job:worker" in ran["save/MergeV2Checkpoints"]
    reader = BundleReader(path)
    assert reader.shards == 2, "what the tasks have written is not written again"
    np.testing.assert_array_equal(reader.tensor("parted"), np.full([4, 2], 5.0))
    assert not list(tmp_path.glob("*temp*"))


def test_a_job_on_a_cluster_goes_on_from_its_checkpoint(cluster, tmp_path):
    found = []
    for steps in (3, 2):
        with tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(2)):
                step = tf.train.get_or_create_global_step()
                w = tf.get_variable("w", initializer=np.zeros(3))
                train = tf.group(w.assign_add(np.ones(3)), step.assign_add(1))
            hooks = [tf.train.StopAtStepHook(num_steps=steps)]
            with tf.train.MonitoredTrainingSession(
                cluster["worker0"].target, checkpoint_dir=str(tmp_path), hooks=hooks
            ) as sess:
                while not sess.should_stop():
                    sess.run(train)
                    found.append(sess.raw_session().run(w).tolist())
        for server in cluster.values():
            tf.Session.reset(server.target)
        tf.summary.FileWriterCache.clear()
    assert found == [[float(n)] * 3 for n in (1, 2, 3, 4, 5)]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
