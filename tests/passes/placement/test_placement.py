"""Placement: wishes, groups, kernels, soft placement; and its errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device
from runnel.graph.registry import register_op
from runnel.passes.placement.placement import place

CPUS = DeviceSet([local_device("CPU", i) for i in range(3)])
CPU_AND_GPUS = DeviceSet([local_device("CPU", 0), local_device("GPU", 0), local_device("GPU", 1)])


@functools.cache
def on_gpu_for_double_only():
    op = register_op("TestDouble", inputs="x: T", outputs="y: T", attrs="T: {float, double}")
    op.kernel(lambda xp, x: x, device="CPU")
    op.kernel(lambda xp, x: x, device="GPU", dtype=tf.float64)
    return op


def where(devices=CPU_AND_GPUS, soft=False, homes=None, graph=None):
    operations = (graph or tf.get_default_graph()).get_operations()
    placed = place(operations, devices, soft, homes).placed
    return {op.name: p.device.short_name for op, p in placed.items()}


def why(name, devices=CPU_AND_GPUS, soft=False):
    operations = tf.get_default_graph().get_operations()
    placed = place(operations, devices, soft).placed
    return {op.name: p.reason for op, p in placed.items()}[name]


def test_without_a_wish_everything_with_a_kernel_is_on_the_first_accelerator():
    tf.add(tf.zeros([2]), 1.0, name="sum")
    tf.py_func(lambda: np.float32(1), [], tf.float32, name="python")
    tf.identity(tf.constant(b"text"), name="text")
    found = where()
    assert found["sum"] == "GPU:0"
    assert found["python"] == found["text"] == "CPU:0"
    assert "no kernel for it on GPU" in why("text")


def test_wishes_whole_and_partial():
    with tf.device("/gpu:1"):
        tf.zeros([], name="a")
    with tf.device("/job:localhost"):
        tf.zeros([], name="b")
    with tf.device("/device:GPU:*"):
        tf.zeros([], name="c")
    with tf.device("/cpu:0"):
        tf.zeros([], name="d")
    found = where()
    assert [found[n] for n in "abcd"] == ["GPU:1", "GPU:0", "GPU:0", "CPU:0"]
    assert "asked for /device:GPU:1" in why("a")


def test_a_colocation_group_is_in_one_place():
    with tf.device("/gpu:1"):
        a = tf.zeros([], name="a")
    with tf.colocate_with(a):
        tf.square(tf.constant(2.0), name="b")
    assert where()["b"] == "GPU:1"
    assert "with 'a'" in why("b")


def test_a_group_counts_where_its_namesake_is_not_in_the_step():
    with tf.device("/gpu:1"):
        a = tf.zeros([], name="a")
    b = tf.constant(1.0, name="b")
    b.op._set_attr("_class", ["loc:@a"])
    assert place([b.op], CPU_AND_GPUS).device_of(b.op).short_name == "GPU:1"
    assert a is not None


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_touches_a_variable_is_where_it_is(use_resource):
    with tf.device("/gpu:1"):
        v = tf.Variable(1.0, name="v", use_resource=use_resource)
    with tf.device("/cpu:0"):
        tf.assign_add(v, 1.0, name="update")
    update_op = next(
        op for op in tf.get_default_graph().get_operations() if op.type.startswith("AssignAdd")
    )
    update_op._set_device("/cpu:0")
    assert where()[update_op.name] == "GPU:1"
    assert "ignored" in why(update_op.name)


def test_constants_and_shapes_go_where_their_values_are():
    with tf.device("/gpu:1"):
        x = tf.square(tf.placeholder(tf.float32), name="x")
    tf.shape(x, name="shape")
    one = tf.constant(1.0, name="one")
    with tf.device("/gpu:1"):
        tf.add(x, one, name="y")
    found = where()
    assert found["shape"] == found["one"] == "GPU:1"


def test_a_variable_stays_at_home():
    v = tf.Variable(1.0, name="v")
    homes = {("", "v"): CPU_AND_GPUS[2]}
    assert where(homes=homes)["v"] == where(homes=homes)["v/read"] == "GPU:1"
    assert v is not None


def test_a_device_that_does_not_exist_names_those_that_do_and_the_remedy():
    with tf.device("/gpu:7"):
        tf.zeros([], name="a")
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        where()
    for part in ("'a'", "/device:GPU:7", "device:GPU:1", "allow_soft_placement", __file__):
        assert part in str(raised.value)
    assert where(soft=True)["a"] == "GPU:0"
    assert "soft placement: there is no /device:GPU:7" in why("a", soft=True)


def test_soft_placement_keeps_to_the_task():
    with tf.device("/job:worker/task:1/gpu:0"):
        tf.zeros([], name="a")
    with pytest.raises(tf.errors.InvalidArgumentError, match="keeps the job and the task"):
        where(soft=True)


def test_a_missing_kernel_names_type_and_device():
    with tf.device("/gpu:0"):
        on_gpu_for_double_only()(tf.constant(1.0), name="f32")
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        where()
    for part in ("'f32'", "TestDouble", "float32", "GPU", "kernels on: CPU", __file__):
        assert part in str(raised.value)
    assert where(soft=True)["f32"] == "CPU:0"


def test_kernels_are_told_apart_by_type():
    with tf.device("/gpu:0"):
        on_gpu_for_double_only()(tf.constant(1.0, tf.float64), name="f64")
    assert where()["f64"] == "GPU:0"


def test_a_data_dependent_shape_is_the_business_of_the_devices_host():
    with tf.device("/gpu:0"):
        tf.where(tf.constant([True, False]), name="where")
    assert where()["where"] == "GPU:0"


def test_an_effect_has_no_place_on_an_accelerator():
    with tf.device("/gpu:0"):
        tf.py_func(lambda: np.float32(1), [], tf.float32, name="python")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no kernel"):
        where()


def test_conflicting_colocation_names_both_operations_and_lines():
    with tf.device("/cpu:0"):
        a = tf.zeros([], name="a")
    with tf.colocate_with(a):
        b = tf.square(a, name="b")
    b.op._set_device("/cpu:1")
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        where(CPUS)
    text = raised.value.message
    assert "'a'" in text and "'b'" in text and text.count(__file__) == 2
    assert where(CPUS, soft=True)["b"] == "CPU:0"
    assert "dropped (soft placement)" in why("b", CPUS, soft=True)


def test_a_loop_without_wishes_of_its_own_follows_the_rest():
    def body(i):
        with tf.device("/cpu:1"):
            return i + tf.constant(1, name="one")

    tf.while_loop(lambda i: tf.less(i, 3, name="less"), body, [tf.constant(0)])
    assert where(CPUS)["while/less"] == "CPU:1"


def test_an_iterator_may_be_asked_for_on_an_accelerator_and_is_never_put_there_unasked():
    iterator = tf.data.Dataset.range(3).make_initializable_iterator()
    with tf.device("/gpu:0"):
        iterator.get_next(name="element")
    tf.data.Dataset.range(3).make_initializable_iterator().get_next(name="other")
    found = where()
    assert found["element"] == "GPU:0" == found[iterator.initializer.name]
    assert found["other"] == "CPU:0"
