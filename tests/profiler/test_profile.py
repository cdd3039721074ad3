"""``tf.profiler``: what is counted, and how it adds up."""

from __future__ import annotations

import json

import pytest

import runnel as tf
from tests.both_tiers import COMPILED, session

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


def named(node, found=None):
    """All nodes below one, by name."""
    found = {} if found is None else found
    for child in node.children:
        found[child.name] = child
        named(child, found)
    return found


def test_another_kind_of_profile_is_refused():
    with pytest.raises(ValueError, match="'graph', 'op' and 'code'"):
        tf.profiler.profile(cmd="time")


def test_a_graph_is_profiled_from_results_to_inputs():
    metadata = traced()
    root = tf.profiler.profile(
        run_meta=metadata, cmd="graph", options=quiet(BUILD.time_and_memory(0, 0))
    )
    stats = spent(metadata)
    assert root.total_exec_micros == sum(s.all_end_rel_micros for s in stats.values())
    below = named(named(root)["result"])
    assert below.keys() >= {"product"}
    assert below["product"].total_requested_bytes == 20 * 40 * 4 + sum(
        node.requested_bytes for node in named(below["product"]).values()
    )
    options = BUILD(BUILD.time_and_memory(0, 0)).with_node_names(start_name_regexes=["product"])
    root = tf.profiler.profile(run_meta=metadata, cmd="graph", options=quiet(options.build()))
    assert [child.name for child in root.children] == ["product"]


def test_a_deep_graph_is_counted_whole():
    x = tf.get_variable("x", [3], initializer=tf.zeros_initializer())
    y = tf.identity(x)
    for _ in range(3000):
        y = tf.square(y)
    root = tf.profiler.profile(cmd="graph", options=quiet(BUILD.float_operation()))
    assert root.total_float_ops == 3000 * 3
    options = quiet(BUILD.trainable_variables_parameter())
    assert tf.profiler.profile(cmd="graph", options=options).total_parameters == 3


def _made_by_a_function():
    return tf.get_variable("inside", [5, 7])


def test_lines_of_code_are_profiled():
    _made_by_a_function()
    tf.get_variable("outside", [2])
    root = tf.profiler.profile(cmd="code", options=quiet(BUILD.trainable_variables_parameter()))
    assert root.total_parameters == 37
    found = named(root)
    [inner] = [node for name, node in found.items() if name.endswith(":_made_by_a_function")]
    assert inner.name.startswith("test_profile.py:") and inner.parameters == 35
    outer = [n for name, n in found.items() if name.endswith("test_lines_of_code_are_profiled")]
    assert sorted(node.total_parameters for node in outer) == [2, 35]


def test_totals_are_those_of_what_is_shown_or_of_all():
    metadata = traced()
    stats = spent(metadata)
    whole = sum(s.all_end_rel_micros for s in stats.values())
    for only, expected in ((True, whole - stats["product"].all_end_rel_micros), (False, whole)):
        options = BUILD(BUILD.time_and_memory(0, 0)).account_displayed_op_only(only)
        options = options.with_node_names(hide_name_regexes=["product"]).build()
        root = tf.profiler.profile(run_meta=metadata, options=quiet(options))
        assert root.total_exec_micros == expected
        kinds = BUILD(options).with_node_names(hide_name_regexes=["MatMul"]).build()
        root = tf.profiler.profile(run_meta=metadata, cmd="op", options=quiet(kinds))
        assert root.total_exec_micros == expected


def test_types_are_ordered_by_how_many_there_are():
    for number in range(3):
        tf.square(tf.ones([4]), name=f"a{number}")
    tf.negative(tf.ones([400]))
    options = BUILD(BUILD.float_operation()).order_by("occurrence").build()
    kinds = tf.profiler.profile(cmd="op", options=quiet(options)).children
    assert [kind.name for kind in kinds] == ["Square", "Neg"]
    with pytest.raises(ValueError, match="occurrence"):
        tf.profiler.profile(options=quiet(BUILD(options).order_by("colour").build()))


@pytest.mark.parametrize("what", ["peak", "residual", "output"])
def test_limits_of_memory_hold(what):
    metadata = traced()
    limit = {f"min_{what}_bytes": 3200}
    for options in (
        BUILD.time_and_memory(0, 0, **limit),
        BUILD(BUILD.time_and_memory(0, 0)).with_min_memory(**limit).build(),
    ):
        root = tf.profiler.profile(run_meta=metadata, options=quiet(options))
        assert {child.name for child in root.children} == {"product", "result"}


def test_times_are_told_by_kind_of_device():
    metadata = traced()
    options = BUILD.time_and_memory(0, 0, min_accelerator_micros=1)
    assert not tf.profiler.profile(run_meta=metadata, options=quiet(options)).children
    [device] = metadata.step_stats.dev_stats
    device.device = device.device.replace("CPU:0", "GPU:0")
    root = tf.profiler.profile(run_meta=metadata, options=quiet(options))
    product = named(root)["product"]
    assert product.accelerator_exec_micros == product.exec_micros and not product.cpu_exec_micros


def test_a_log_of_operations_adds_types_and_arithmetic(tmp_path):
    tf.get_variable("w", [3], initializer=tf.zeros_initializer())
    tf.py_func(lambda: 1.0, [], tf.double, name="python")
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="python", float_ops=700, types=["mine"])
    options = BUILD(BUILD.float_operation()).with_accounted_types(["mine"]).build()
    assert tf.profiler.profile(op_log=log, options=quiet(options)).total_float_ops == 700
    profiler = tf.profiler.Profiler(op_log=log)
    for view in (profiler.profile_name_scope, profiler.profile_graph, profiler.profile_python):
        assert view(quiet(options)).total_float_ops == 700
    tf.profiler.write_op_log(None, tmp_path / "logs", log)
    read = tf.profiler.OpLogProto.FromString((tmp_path / "logs" / "tfprof_log").read_bytes())
    entries = {entry.name: (entry.float_ops, [*entry.types]) for entry in read.log_entries}
    assert entries == {"w": (0, ["_trainable_variables"]), "python": (700, ["mine"])}


def test_a_compiled_step_and_a_timeline(tmp_path):
    w = tf.get_variable("w", [30, 40])
    y = tf.tanh(tf.matmul(tf.ones([20, 30]), w), name="result")
    metadata = tf.RunMetadata()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(y, options=options, run_metadata=metadata)
    [kind] = tf.profiler.profile(
        run_meta=metadata, cmd="op", options=quiet(BUILD.time_and_memory())
    ).children
    [run] = kind.graph_nodes
    assert kind.name == "XlaRun" and run.name == "result/compiled"
    assert run.output_bytes == 20 * 40 * 4 <= run.peak_bytes
    path = tmp_path / "step.json"
    options = BUILD(BUILD.time_and_memory()).with_timeline_output(path).build()
    tf.profiler.profile(run_meta=metadata, options=options)
    assert [e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"] == [
        "XlaRun"
    ]
    with pytest.raises(ValueError, match="run_meta"):
        tf.profiler.profile(options=options)


def test_advice_names_what_takes_longest_and_its_line(capsys):
    metadata = traced()
    slowest = max(spent(metadata).values(), key=lambda stats: stats.all_end_rel_micros)
    slowest.all_end_rel_micros += 1000
    advice = tf.profiler.advise(run_meta=metadata)
    reports = advice.checkers["ExpensiveOperationChecker"].reports
    assert f"top 1 operation: {slowest.node_name} (" in reports[0] and "ms" in reports[0]
    assert reports[0] in capsys.readouterr().out
    assert not advice.checkers["AcceleratorUtilizationChecker"].reports
    [device] = metadata.step_stats.dev_stats
    device.device = device.device.replace("CPU:0", "GPU:0")
    profiler = tf.profiler.Profiler()
    profiler.add_step(1, metadata)
    chosen = {"AcceleratorUtilizationChecker": {}}
    [(name, found)] = profiler.advise(chosen).checkers.items()
    assert name in chosen and "GPU:0 utilization: " in found.reports[0]
    with pytest.raises(ValueError, match="JobChecker"):
        tf.profiler.advise(run_meta=metadata, options={"Nobody": {}})


def test_what_is_not_there_says_what_is():
    with pytest.raises(tf.errors.UnimplementedError, match="RunMetadata"):
        tf.profiler.Profiler().serialize_to_string()
