"""Clusters as users write them."""

from __future__ import annotations

import pytest

import runnel as tf


def test_dense_and_sparse_jobs():
    cluster = tf.train.ClusterSpec({"ps": ["ps0:1", "ps1:2"], "worker": {1: "w1:3", 7: "w7:4"}})
    assert cluster.jobs == ["ps", "worker"]
    assert cluster.as_dict() == {"ps": ["ps0:1", "ps1:2"], "worker": {1: "w1:3", 7: "w7:4"}}
    assert cluster.num_tasks("worker") == 2 and cluster.task_indices("worker") == [1, 7]
    assert cluster.task_address("worker", 7) == "w7:4"
    assert cluster.job_tasks("worker") == [None, "w1:3", None, None, None, None, None, "w7:4"]
    assert tf.train.ClusterSpec(cluster) == cluster
    assert tf.train.ClusterSpec(cluster.as_cluster_def()) == cluster
    assert not tf.train.ClusterSpec({})
    with pytest.raises(ValueError, match="No task with index 0 in job 'worker'"):
        cluster.task_address("worker", 0)
    with pytest.raises(ValueError, match="No such job"):
        cluster.num_tasks("chief")


@pytest.mark.parametrize("wrong", [3, {"ps": 3}, {"ps": {"0": "a:1"}}, {1: ["a:1"]}, {"ps": [3]}])
def test_what_is_no_cluster_says_so(wrong):
    with pytest.raises(TypeError):
        tf.train.ClusterSpec(wrong)


def test_json():
    cluster = tf.train.ClusterSpec.from_json('{"ps": ["a:1"], "worker": {"2": "b:2"}}')
    assert cluster.as_dict() == {"ps": ["a:1"], "worker": {2: "b:2"}}


def test_a_server_takes_its_definition_in_every_form():
    definition = tf.train.ServerDef(job_name="worker", task_index=0)
    definition.cluster.job.add(name="worker").tasks[0] = "localhost:0"
    for arguments in (
        (definition,),
        ({"worker": ["localhost:0"]}, "worker", 0),
        (tf.train.ClusterSpec({"worker": ["localhost:0"]}),),
    ):
        server = tf.train.Server(*arguments)
        try:
            assert server.server_def.job_name == "worker"
            assert server.target.startswith("grpc://localhost:")
            with tf.Session(server.target) as sess:
                assert sess.run(tf.constant(2) * 3) == 6
        finally:
            server.stop()
    with pytest.raises(ValueError, match="No such job"):
        tf.train.Server(definition, "ps", 0)
    with pytest.raises(tf.errors.NotFoundError, match="protocol"):
        tf.train.Server(definition, protocol="carrier pigeon")


def test_another_address_than_loopback_needs_tls_and_a_token_or_a_wish(monkeypatch):
    for name in ("RUNNEL_INSECURE", "RUNNEL_CLUSTER_TOKEN", "RUNNEL_TLS_CERT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(tf.errors.FailedPreconditionError, match="RUNNEL_CLUSTER_TOKEN"):
        tf.train.Server({"worker": ["0.0.0.0:0"]}, "worker", 0)
    monkeypatch.setenv("RUNNEL_CLUSTER_TOKEN", "secret")
    with pytest.raises(tf.errors.FailedPreconditionError, match="RUNNEL_TLS_CERT"):
        tf.train.Server({"worker": ["0.0.0.0:0"]}, "worker", 0)
    monkeypatch.setenv("RUNNEL_INSECURE", "1")
    tf.train.Server({"worker": ["0.0.0.0:0"]}, "worker", 0).stop()


# Devices of replicas ----------------------------------------------------------------------------


def test_variables_go_to_parameter_servers_in_turn_and_the_rest_to_the_worker():
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        variables = [tf.Variable(float(i)) for i in range(3)]
        total = tf.add_n(variables)
        with tf.device("/job:ps/task:1"):
            placed = tf.Variable(0.0)
        with tf.device("/gpu:0"):
            computed = total * 2
    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert variables[1].initializer.device == "/job:ps/task:1"
    assert total.device == "/job:worker"
    assert placed.device == "/job:ps/task:1"
    assert computed.device == "/job:worker/device:GPU:0"
    assert tf.train.replica_device_setter(cluster={"worker": ["c:1"]}) is None
    assert tf.train.replica_device_setter() is None


def test_the_parameter_server_with_the_least_bytes_is_next():
    training = tf.contrib.training
    strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
        sizes = [100, 10, 20, 30, 60]
        tasks = [tf.Variable(tf.zeros([n])).device[-1] for n in sizes]
    assert tasks == ["0", "1", "1", "1", "1"]
