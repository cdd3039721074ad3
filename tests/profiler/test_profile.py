"""``tf.profiler``: what is counted, and how it adds up."""

from __future__ import annotations

import pytest

import runnel as tf

BUILD = tf.profiler.ProfileOptionBuilder


def quiet(options):
    return BUILD(options).with_empty_output().build()


def traced():
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", [30, 40])
    y = tf.tanh(tf.matmul(tf.ones([20, 30]), w, name="product"), name="result")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(y, options=options, run_metadata=metadata)
    return metadata


def spent(metadata):
    return {s.node_name: s for d in metadata.step_stats.dev_stats for s in d.node_stats}


def test_times_and_bytes_are_those_of_the_trace():
    metadata = traced()
    stats = spent(metadata)
    root = tf.profiler.profile(run_meta=metadata, options=quiet(BUILD.time_and_memory(0, 0)))
    assert root.total_exec_micros == sum(s.all_end_rel_micros for s in stats.values())
    nodes = {child.name: child for child in root.children}
    assert nodes["product"].exec_micros == stats["product"].all_end_rel_micros
    assert nodes["product"].requested_bytes == 20 * 40 * 4
    assert nodes["layer"].total_parameters == 1200 and nodes["layer"].parameters == 0
    order = [child.total_exec_micros for child in root.children]
    assert order == sorted(order, reverse=True)


def test_floating_point_operations_are_counted_where_shapes_are_known():
    images = tf.placeholder(tf.float32, [2, 8, 8, 3])
    with tf.name_scope("net"):
        found = tf.nn.conv2d(images, tf.zeros([3, 3, 3, 5]), 2, "SAME", name="conv")
        pooled = tf.nn.max_pool(found, 2, 2, "SAME", name="pool")
        rows = tf.reshape(pooled, [2, 20])
        tf.nn.softmax(tf.matmul(rows, tf.zeros([20, 4]), name="product"), name="chances")
    tf.matmul(tf.placeholder(tf.float32, [None, 3]), tf.zeros([3, 4]), name="unknown")
    root = tf.profiler.profile(options=quiet(BUILD.float_operation()))
    [net] = root.children
    expected = {
        "net/conv": 2 * (2 * 4 * 4 * 5) * (3 * 3 * 3),
        "net/product": 2 * 20 * (2 * 4),
        "net/pool": 4 * (2 * 2 * 2 * 5),
        "net/chances": 5 * (2 * 4),
    }
    assert {node.name: node.float_ops for node in net.children} == expected
    assert root.total_float_ops == net.total_float_ops == sum(expected.values())
    kinds = tf.profiler.profile(cmd="op", options=quiet(BUILD.float_operation()))
    assert kinds.total_float_ops == root.total_float_ops


def test_the_gradient_of_a_convolution_takes_twice_as_much():
    images = tf.placeholder(tf.float32, [2, 8, 8, 3])
    filters = tf.get_variable("filters", [3, 3, 3, 5], initializer=tf.zeros_initializer())
    found = tf.nn.conv2d(images, filters, 1, "SAME")
    tf.gradients(found, [images, filters])
    kinds = tf.profiler.profile(cmd="op", options=quiet(BUILD.float_operation())).children
    counts = {kind.name: kind.float_ops for kind in kinds}
    once = 2 * (2 * 8 * 8 * 5) * (3 * 3 * 3)
    for kind in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"):
        assert counts[kind] == once


def test_types_of_operations_add_up():
    metadata = traced()
    root = tf.profiler.profile(None, metadata, cmd="op", options=quiet(BUILD.time_and_memory()))
    kinds = {child.name: child for child in root.children}
    assert kinds["MatMul"].requested_bytes == kinds["Tanh"].requested_bytes == 3200
    assert [node.name for node in kinds["MatMul"].graph_nodes] == ["product"]
    assert root.total_exec_micros == sum(child.exec_micros for child in root.children)
    assert "Placeholder" not in kinds


def test_a_profiler_takes_the_mean_of_its_steps():
    one, other = traced(), tf.RunMetadata()
    other.CopyFrom(one)
    for device in other.step_stats.dev_stats:
        for stats in device.node_stats:
            stats.all_end_rel_micros *= 3
    profiler = tf.profiler.Profiler()
    profiler.add_step(1, one)
    profiler.add_step(2, other)
    product = spent(one)["product"].all_end_rel_micros

    def micros(options):
        root = profiler.profile_name_scope(quiet(options))
        return next(child for child in root.children if child.name == "product").exec_micros

    assert micros(BUILD.time_and_memory()) == 2 * product
    assert micros(BUILD(BUILD.time_and_memory()).with_step(2).build()) == 3 * product
    with pytest.raises(ValueError, match="step 7"):
        micros(BUILD(BUILD.time_and_memory()).with_step(7).build())


def test_names_and_sizes_choose_what_is_shown():
    metadata = traced()
    options = BUILD(BUILD.time_and_memory()).with_node_names(hide_name_regexes=["product"])
    root = tf.profiler.profile(run_meta=metadata, options=quiet(options.build()))
    assert "product" not in {child.name for child in root.children}
    options = BUILD(BUILD.time_and_memory()).with_min_memory(3200)
    root = tf.profiler.profile(run_meta=metadata, options=quiet(options.build()))
    assert {child.name for child in root.children} == {"product", "result"}


def test_a_profile_is_printed_or_written(tmp_path, capsys):
    traced()
    tf.profiler.profile(options=BUILD.trainable_variables_parameter())
    printed = capsys.readouterr().out
    assert "layer/w" in printed and "1200/1200" in printed
    path = tmp_path / "profile.txt"
    options = BUILD(BUILD.trainable_variables_parameter()).with_file_output(path).build()
    tf.profiler.profile(options=options)
    assert path.read_text().strip() == printed.strip() and not capsys.readouterr().out


def test_another_kind_of_profile_is_refused():
    with pytest.raises(ValueError, match="not by 'code'"):
        tf.profiler.profile(cmd="code")
