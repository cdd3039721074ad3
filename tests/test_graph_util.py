"""From a graph for training to one for inference."""

import numpy as np
import pytest
from google.protobuf import text_format

import runnel as tf


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_extract_sub_graph(graph):
    a = tf.constant(1.0, name="a")
    b = tf.constant(2.0, name="b")
    with tf.control_dependencies([b]):
        tf.identity_n([a, a], name="c")
    tf.identity(graph.get_tensor_by_name("c:1"), name="d")
    tf.identity(a, name="unused")
    part = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["d"])
    assert [n.name for n in part.node] == ["a", "b", "c", "d"]
    assert part.versions.producer == 134
    with pytest.raises(ValueError, match="'nowhere'.*not in the graph"):
        tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["nowhere"])
    with pytest.raises(TypeError, match="list"):
        tf.graph_util.extract_sub_graph(graph.as_graph_def(), "d")
    with pytest.raises(TypeError, match="GraphDef"):
        tf.graph_util.extract_sub_graph(graph, ["d"])


def test_remove_training_nodes(graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.identity(x, name="a")
    b = tf.identity(a, name="b")
    with tf.control_dependencies([a]):
        c = tf.identity(x, name="c")
    tf.add(b, c, name="out")
    graph_def = graph.as_graph_def()
    slim = tf.graph_util.remove_training_nodes(graph_def)
    # "a" is waited for and "c" waits: both stay.
    assert {n.name: list(n.input) for n in slim.node} == {
        "x": [],
        "a": ["x"],
        "c": ["x", "^a"],
        "out": ["a", "c"],
    }
    kept = tf.graph_util.remove_training_nodes(graph_def, protected_nodes=["b"])
    assert "b" in [n.name for n in kept.node]


def test_remove_training_nodes_drops_checks():
    graph_def = text_format.Parse(
        """
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "check" op: "CheckNumerics" input: "x" }
        node { name: "y" op: "Neg" input: "check" input: "^check" }
        """,
        tf.GraphDef(),
    )
    slim = tf.graph_util.remove_training_nodes(graph_def)
    assert {n.name: list(n.input) for n in slim.node} == {"x": [], "y": ["x"]}


def test_remove_training_nodes_refuses_a_cycle():
    graph_def = text_format.Parse(
        """
        node { name: "a" op: "Identity" input: "b" }
        node { name: "b" op: "Identity" input: "a" }
        node { name: "c" op: "Neg" input: "a" }
        """,
        tf.GraphDef(),
    )
    with pytest.raises(ValueError, match="cycle"):
        tf.graph_util.remove_training_nodes(graph_def)


# Freezing -----------------------------------------------------------------------------------------


def run_frozen(graph_def, fetch, feed_dict=None):
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session() as sess:
            return sess.run(fetch, feed_dict)


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_become_constants(graph, use_resource):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.Variable([[1.0], [2.0]], name="w", use_resource=use_resource)
    unused = tf.Variable(1.0, name="unused")
    tf.matmul(x, w, name="y")
    double = tf.assign(w, 2 * w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(double)
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
        expected = sess.run("y:0", {x: [[1.0, 1.0]]})
    del unused
    assert {n.op for n in frozen.node} == {"Placeholder", "Const", "Identity", "MatMul"}
    given = run_frozen(frozen, "y:0", {"x:0": [[1.0, 1.0]]})
    assert given.tolist() == expected.tolist() == [[6.0]]


def test_a_gather_from_a_variable(graph):
    op = tf.registered_ops()
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    handle = op["VarHandleOp"](dtype=tf.float32, shape=[3, 2], name="table")
    init = op["AssignVariableOp"](handle, table)
    op["ReadVariableOp"](handle, dtype=tf.float32, name="read")
    fence = tf.no_op(name="fence")
    with tf.control_dependencies([fence]):
        op["ResourceGather"](handle, [2, 0], dtype=tf.float32, name="rows")
    with tf.Session() as sess:
        sess.run(init)
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["rows"])
    rows = next(n for n in frozen.node if n.name == "rows")
    assert rows.op == "GatherV2" and list(rows.input)[-1] == "^fence"
    np.testing.assert_array_equal(run_frozen(frozen, "rows:0"), table[[2, 0]])


def test_choosing_variables(graph):
    a = tf.Variable(1.0, name="a")
    b = tf.Variable(2.0, name="b")
    tf.add(a, b, name="sum")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for choice in ({"variable_names_whitelist": ["a"]}, {"variable_names_blacklist": ["b"]}):
            frozen = tf.graph_util.convert_variables_to_constants(
                sess, graph.as_graph_def(), ["sum"], **choice
            )
            ops = {n.name: n.op for n in frozen.node}
            assert ops["a"] == "Const" and ops["b"] == "VariableV2"


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_update_cannot_be_frozen(graph, use_resource):
    v = tf.Variable(1.0, name="v", use_resource=use_resource)
    with tf.control_dependencies([v.assign_add(1.0)]):
        tf.identity(v.read_value(), name="y")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ValueError, match="'v' itself.*blacklist"):
            tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])


def test_must_run_on_cpu(graph):
    text, number = tf.constant("a").op, tf.constant(1.0).op
    assert tf.graph_util.must_run_on_cpu(text)
    assert tf.graph_util.must_run_on_cpu(text.node_def)
    assert not tf.graph_util.must_run_on_cpu(number)
    variable = tf.Variable(1.0).op
    assert not tf.graph_util.must_run_on_cpu(variable)
    assert tf.graph_util.must_run_on_cpu(variable, pin_variables_on_cpu=True)


# Freezing what loops and branches read --------------------------------------------------------


def choice_of_two():
    a = tf.Variable(1.0, name="a", use_resource=True)
    b = tf.Variable(2.0, name="b", use_resource=True)
    op = tf.registered_ops()
    p = tf.placeholder(tf.bool, [], name="p")
    chosen = [op["Switch"](v.handle, p)[side] for v, side in ((b, 0), (a, 1))]
    handle, _ = op["Merge"](chosen, name="chosen")
    op["ReadVariableOp"](handle, dtype=tf.float32, name="y")
    op["AssignAddVariableOp"](handle, 1.0, name="update")


def test_a_variable_that_data_choose(graph):
    choice_of_two()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        freeze = tf.graph_util.convert_variables_to_constants
        frozen = freeze(sess, graph.as_graph_def(), ["y"])
        with pytest.raises(ValueError, match="'chosen'.*either.*'a'.*both or neither"):
            freeze(sess, graph.as_graph_def(), ["y"], variable_names_blacklist=["b"])
        with pytest.raises(ValueError, match="'update'.*itself"):
            freeze(sess, graph.as_graph_def(), ["update"])
    assert [run_frozen(frozen, "y:0", {"p:0": p}) for p in (True, False)] == [1.0, 2.0]


def test_a_variable_that_only_a_loop_reads(graph):
    op = tf.registered_ops()
    handle = op["VarHandleOp"](dtype=tf.float32, shape=[], name="v")
    init = op["AssignVariableOp"](handle, 2.0)

    def body(i, a):
        return i + 1, a * op["ReadVariableOp"](handle, dtype=tf.float32)

    tf.identity(tf.while_loop(lambda i, a: i < 3, body, (0, 1.0))[1], name="y")
    with tf.Session() as sess:
        sess.run(init)
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
    assert run_frozen(frozen, "y:0") == 8.0


def test_shapes_by_the_names_of_inputs(graph):
    tf.split(tf.placeholder(tf.float32, [4, 3]), 2, name="parts")
    shape_of = tf.graph_util.tensor_shape_from_node_def_name
    assert shape_of(graph, "parts:1").as_list() == [2, 3]
    assert shape_of(graph, "parts").as_list() == [2, 3]
    assert tf.graph_util.import_graph_def is tf.import_graph_def
