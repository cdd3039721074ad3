"""Resolvers say what TensorFlow's say."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

BOTH = (reference, runnel)
CLUSTER = {"worker": ["a:1", "b:2"], "ps": ["c:3"]}


def _same(say) -> None:
    assert say(runnel, runnel.distribute.cluster_resolver) == say(
        reference, reference.distribute.cluster_resolver
    )


def _asked(resolver):
    questions = [(), ("worker", 1), ("ps", 0, "other")]
    return [
        resolver.cluster_spec().as_dict(),
        resolver.task_type,
        resolver.task_id,
        resolver.environment,
        *(resolver.master(*question) for question in questions),
    ]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}},
        {"cluster": CLUSTER, "task": {"type": "worker", "index": "1"}},
        {"cluster": CLUSTER, "task": {"type": "ps", "index": 0}, "rpc_layer": "grpc"},
    ],
)
@pytest.mark.parametrize("options", [{}, {"task_type": "ps", "task_id": 0, "rpc_layer": "x"}])
def test_tf_config(config, options, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    _same(lambda tf, resolver: _asked(resolver.TFConfigClusterResolver(**options)))


@pytest.mark.parametrize(
    "options",
    [{}, {"master": "m", "rpc_layer": "grpc"}, {"task_type": "ps", "task_id": 0}],
)
def test_simple_and_union(options):
    def simple(tf, resolver):
        one = resolver.SimpleClusterResolver(tf.train.ClusterSpec(CLUSTER), **options)
        other = tf.train.ClusterSpec({"worker": ["d:4"], "chief": ["e:5"]})
        union = resolver.UnionResolver(one, resolver.SimpleClusterResolver(other, master="n"))
        return _asked(one), _asked(union), one.rpc_layer, union.rpc_layer, one.num_accelerators()

    _same(simple)


@pytest.mark.parametrize("jobs", [None, {"ps": 1, "worker": 4}, {"worker": 3, "ps": 2}])
@pytest.mark.parametrize("number", range(5))
def test_slurm(jobs, number, monkeypatch):
    step = {
        "PROCID": str(number),
        "STEP_NUM_TASKS": "5",
        "STEP_NODELIST": "t02n[13,41],t03n08",
        "STEP_TASKS_PER_NODE": "2(x2),1",
    }
    for name, value in step.items():
        monkeypatch.setenv(f"SLURM_{name}", value)

    def asked(tf, resolver):
        found = resolver.SlurmClusterResolver(
            jobs, port_base=5000, gpus_per_node=2, gpus_per_task=1, auto_set_gpu=False
        )
        spec = found.cluster_spec()
        return spec.as_dict(), found.get_task_info(), found.master(), found.master("worker", 1)

    _same(asked)


@pytest.mark.parametrize("module", BOTH, ids=["tensorflow", "runnel"])
def test_mistakes(module):
    resolver = module.distribute.cluster_resolver
    for wrong, kind in (
        (lambda: resolver.UnionResolver(), ValueError),
        (lambda: resolver.UnionResolver(1), TypeError),
        (lambda: resolver.SimpleClusterResolver({"a": ["b:1"]}), TypeError),
    ):
        with pytest.raises(kind):
            wrong()
