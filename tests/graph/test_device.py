"""Device names, whole and in part; device sets. TensorFlow's answers: tests/conformance."""

from __future__ import annotations

import pytest

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device


def test_a_name_is_taken_apart_and_put_together():
    spec = tf.DeviceSpec.from_string("/job:worker/replica:1/task:2/gpu:3")
    assert (spec.job, spec.replica, spec.task) == ("worker", 1, 2)
    assert (spec.device_type, spec.device_index) == ("GPU", 3)
    assert spec.to_string() == "/job:worker/replica:1/task:2/device:GPU:3"


def test_parts_may_be_missing():
    assert tf.DeviceSpec.from_string("").to_string() == ""
    assert tf.DeviceSpec.from_string("/cpu:*").to_string() == "/device:CPU:*"
    assert tf.DeviceSpec(job="ps").to_string() == "/job:ps"


@pytest.mark.parametrize("name", ["/cpu:x", "/device:GPU", "/task:a", "/what:0", "/cpu:0/gpu:0"])
def test_a_bad_name_says_what_is_wrong(name):
    with pytest.raises(ValueError, match="device name|twice"):
        tf.DeviceSpec.from_string(name)


def test_replacing_and_merging():
    spec = tf.DeviceSpec(job="ps", task=0, device_type="CPU", device_index=0)
    assert spec.replace(task=1).to_string() == "/job:ps/task:1/device:CPU:0"
    merged = spec.make_merged_spec(tf.DeviceSpec(job="worker"))
    assert merged.to_string() == "/job:worker/task:0/device:CPU:0"
    assert spec.job == "ps"
    spec.merge_from(tf.DeviceSpec(device_type="GPU"))
    assert spec.to_string() == "/job:ps/task:0/device:GPU:0"
    with pytest.raises(TypeError, match="no part 'host'"):
        spec.replace(host="a")


def test_equal_names_are_equal():
    assert tf.DeviceSpec.from_string("/gpu:1") == tf.DeviceSpec.from_string("/device:GPU:1")
    assert len({tf.DeviceSpec(job="a"), tf.DeviceSpec(job="a")}) == 1


def test_a_set_finds_what_a_partial_name_admits():
    devices = DeviceSet([local_device("CPU", 0), local_device("GPU", 0), local_device("GPU", 1)])
    assert [d.short_name for d in devices.matching("")] == ["GPU:0", "GPU:1", "CPU:0"]
    assert [d.short_name for d in devices.matching("/device:GPU:*")] == ["GPU:0", "GPU:1"]
    assert [d.short_name for d in devices.matching("/job:localhost/device:GPU:1")] == ["GPU:1"]
    assert devices.matching("/job:worker") == ()
    assert devices.host.short_name == "CPU:0"
