"""Graphs that ``tf.contrib.graph_editor`` copies and rewires."""

import re

import numpy as np

from tests.contrib.programs.frame import values


def _network(tf):
    """A network with two layers in scopes, and where its tensors are."""
    x = tf.constant(values(1, 4, 3), name="x")
    with tf.variable_scope("first"):
        weights = tf.get_variable("w", [3, 5])
        hidden = tf.nn.relu(tf.matmul(x, weights), name="hidden")
    with tf.variable_scope("second"):
        weights = tf.get_variable("w", [5, 2])
        out = tf.add(tf.matmul(hidden, weights), tf.reduce_sum(x), name="out")
    return x, hidden, out


def _names(elements):
    """The names, as numbers: the bytes of their letters."""
    names = [element if isinstance(element, str) else element.name for element in elements]
    return np.frombuffer(" ".join(names).encode(), np.uint8)


def _sorted(elements):
    return _names(sorted(element.name for element in elements))


def copied_with_another_input(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    ops = ge.get_walks_intersection_ops([x], [out])
    view, info = ge.copy_with_input_replacements(
        ge.sgv(sorted(ops, key=lambda op: op._id)), {x: 2.0 * x}, dst_scope="again"
    )
    copy = info.transformed(out)
    weights = tf.trainable_variables()
    assert info.original(copy) is out and info.transformed(x) is None
    assert info.transformed(x, lambda missing: missing) is x
    names = _sorted(view.ops)
    return run([copy, info.transformed(hidden)] + tf.gradients(copy, weights)) + [names]


def copied_with_placeholders(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    view, info = ge.copy([hidden.op, out.op], dst_scope="part", src_scope="")
    taken = {tensor for op in view.ops for tensor in op.inputs}
    feeds = sorted(taken - {info.transformed(hidden)}, key=lambda tensor: tensor.name)
    given = [values(1, 4, 5), values(2, 4, 2), values(3)]
    return run(list(view.outputs), dict(zip(feeds, given))) + [_names(view.ops), _names(feeds)]


def replaced_in_the_middle(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    new, same = ge.graph_replace([out, x], {hidden: tf.stop_gradient(hidden) * 3.0})
    assert same is x
    return run([new, out]) + [_names([new])]


def rerouted(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    checked = tf.identity(hidden, name="checked") + 1.0
    count = ge.reroute_ts([checked], [hidden], can_modify=[out.op.inputs[0].op])
    other = tf.constant(values(7, 4, 3), name="other")
    swapped = ge.swap_ts(x, other)
    return run([out, hidden]) + [count, swapped]


def cut_and_joined(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    _, inputs = ge.detach_inputs(ge.sgv(out.op))
    names = _names(inputs)
    before = tf.constant(values(8, 4, 2)), tf.constant(2.0)
    ge.connect(ge.sgv(*[tensor.op for tensor in before]), ge.sgv(out.op))
    relu, bypassed = ge.bypass(ge.sgv(hidden.op))
    return run([out]) + [names, _names(bypassed), len(relu.ops)]


def chosen(tf, run):
    ge = tf.contrib.graph_editor
    x, hidden, out = _network(tf)
    graph = tf.get_default_graph()
    types = ("MatMul", "Relu", "AddV2", "Add", "Sum")
    ops = [op for op in graph.get_operations() if op.type in types and "Init" not in op.name]
    view = ge.sgv(ops)
    return [
        _names(view.inputs),
        _names(view.outputs),
        _names(ge.filter_ts_from_regex(ops, "hid.*|out")),
        _names(ge.select_ts("(?#ts)^first/hid", graph=graph)),
        _names(ge.select_ops(re.compile("out$"), graph=graph)),
        _sorted(ge.get_forward_walk_ops(hidden.op, inclusive=False)),
        _sorted(ge.get_forward_walk_ops([x], within_ops=ops, stop_at_ts=[hidden])),
        _sorted(ge.get_backward_walk_ops([hidden.op], within_ops=ops)),
        _sorted(ge.get_walks_union_ops([hidden.op], [hidden.op], within_ops=ops)),
        _sorted(ge.get_name_scope_ops(ops, "second")),
        _names(ge.get_generating_ops([hidden])),
        _sorted(ge.get_consuming_ops([x])),
        _names(view.remap_inputs([1]).inputs),
        _names([ge.placeholder_name(hidden), ge.placeholder_name(scope="s")]),
    ]
