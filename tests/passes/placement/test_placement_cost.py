"""Automatic placement: the default, unless another is clearly faster."""

from __future__ import annotations

import pytest

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device
from runnel.passes.placement.placement import place
from runnel.passes.placement.placement_cost import improve
from runnel.passes.program.prune import prune

CPU_AND_GPU = DeviceSet([local_device("CPU", 0, hardware="host"), local_device("GPU", 0)])
TWO_GPUS = DeviceSet([*CPU_AND_GPU, local_device("GPU", 1)])
TWO_CPUS = DeviceSet([local_device("CPU", i, hardware="host") for i in range(2)])


def placed(devices, fetches, feeds=(), homes=None):
    tensors = [f for f in fetches if isinstance(f, tf.Tensor)]
    targets = [f for f in fetches if isinstance(f, tf.Operation)]
    program = prune(tensors, targets, feeds)
    default = place([node.op for node in program.nodes], devices, homes=homes)
    return improve(program, default, homes or {}).placed


def where(placed, tensor):
    return placed[getattr(tensor, "op", tensor)].device.short_name


def test_a_large_product_stays_on_the_accelerator():
    x = tf.placeholder(tf.float32, [2048, 2048])
    y = tf.matmul(x, x)
    assert where(placed(CPU_AND_GPU, [y], [x]), y) == "GPU:0"


def test_a_few_scalars_are_computed_by_the_host():
    x = tf.placeholder(tf.float32, [])
    y = tf.square(x) + 1.0
    found = placed(CPU_AND_GPU, [y], [x])
    assert where(found, y) == "CPU:0"
    assert "cost model: the step is too small" in found[y.op].reason


def test_a_wish_is_never_overridden():
    x = tf.placeholder(tf.float32, [])
    with tf.device("/gpu:0"):
        y = tf.square(x)
    assert where(placed(CPU_AND_GPU, [y], [x]), y) == "GPU:0"


def test_looking_at_a_variable_does_not_bring_it_to_the_host():
    v = tf.Variable(tf.zeros([100]), use_resource=True)
    y = v.read_value()
    found = placed(CPU_AND_GPU, [y])
    assert where(found, v.handle) == where(found, v.op) == "GPU:0"


def tower(x, name):
    for layer in range(4):
        w = tf.get_variable(f"{name}{layer}", [1024, 1024])
        x = tf.nn.relu(tf.matmul(x, w))
    return tf.reduce_sum(x)


def test_independent_branches_are_spread_over_accelerators():
    x = tf.placeholder(tf.float32, [4096, 1024])
    left, right = tower(x, "left"), tower(x, "right")
    found = placed(TWO_GPUS, [left, right], [x])
    assert {where(found, left), where(found, right)} == {"GPU:0", "GPU:1"}
    for name in ("left", "right"):
        ops = [op for op in found if op.name.startswith(name)]
        assert len({found[op].device for op in ops}) == 1  # a branch keeps to its device


def test_a_chain_is_not_spread():
    x = tf.placeholder(tf.float32, [4096, 1024])
    y = tower(x, "only")
    found = placed(TWO_GPUS, [y], [x])
    assert {p.device.short_name for p in found.values()} == {"GPU:0"}


def test_devices_that_share_a_processor_gain_nothing():
    x = tf.placeholder(tf.float32, [4096, 1024])
    found = placed(TWO_CPUS, [tower(x, "left"), tower(x, "right")], [x])
    assert {p.device.short_name for p in found.values()} == {"CPU:0"}


@pytest.mark.parametrize("home", [0, 1])
def test_a_variable_stays_at_home(home):
    x = tf.placeholder(tf.float32, [4096, 1024])
    y = tower(x, "only")
    homes = {("", f"only{layer}"): TWO_GPUS[1 + home] for layer in range(4)}
    found = placed(TWO_GPUS, [y], [x], homes)
    assert where(found, tf.global_variables()[0].op) == f"GPU:{home}"


def test_variables_away_from_the_preferred_device_stay_there_though_spreading_is_faster():
    x = tf.placeholder(tf.float32, [4096, 1024])
    left, right = tower(x, "left"), tower(x, "right")
    spread = placed(TWO_GPUS, [left, right], [x])
    assert {where(spread, left), where(spread, right)} == {"GPU:0", "GPU:1"}
    homes = {("", f"{name}{i}"): TWO_GPUS[2] for name in ("left", "right") for i in range(4)}
    kept = placed(TWO_GPUS, [left, right], [x], homes)
    assert {where(kept, v.op) for v in tf.global_variables()} == {"GPU:1"}
    assert all(kept[v.op].keeps_variable for v in tf.global_variables())
    assert not any(spread[v.op].keeps_variable for v in tf.global_variables())
