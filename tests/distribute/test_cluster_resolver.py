"""``tf.distribute.cluster_resolver``; tests/conformance compares it with TensorFlow's."""

from __future__ import annotations

import json

import pytest

import runnel as tf

resolver = tf.distribute.cluster_resolver


def test_a_server_and_a_session_are_made_of_what_tf_config_says(monkeypatch):
    from tests.distributed.clusters import cluster_of

    spec = cluster_of(worker=1, ps=1)
    config = {"cluster": spec, "task": {"type": "worker", "index": 0}, "rpc_layer": "grpc"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = resolver.TFConfigClusterResolver()
    ps = tf.train.Server(found.cluster_spec(), "ps", 0)
    server = tf.train.Server(found.cluster_spec(), found.task_type, found.task_id)
    try:
        assert server.target == found.master()
        with tf.Session(found.master()) as sess:
            assert sess.run(tf.constant(3)) == 3
        assert found.num_accelerators() == {}
    finally:
        server.stop()
        ps.stop()


def test_a_broken_tf_config_is_told(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(ValueError, match="TF_CONFIG is not JSON"):
        resolver.TFConfigClusterResolver().cluster_spec()
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:2"]}}))
    with pytest.raises(ValueError, match="which task this is"):
        resolver.TFConfigClusterResolver().master()


def test_a_task_of_slurm_sees_its_share_of_the_gpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name, value in {"PROCID": "3", "STEP_NODELIST": "n[0-1]"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    import os

    resolver.SlurmClusterResolver(tasks_per_node=2, gpus_per_node=4)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    with pytest.raises(RuntimeError, match="more than its 4 GPUs"):
        resolver.SlurmClusterResolver(tasks_per_node=2, gpus_per_node=4, gpus_per_task=3)


def test_an_unknown_part_of_distribute_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match="cluster_resolver"):
        tf.distribute.MirroredStrategy  # noqa: B018
