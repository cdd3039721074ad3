"""What a graph looks like as a GraphDef."""

import time

import numpy as np
import pytest
from tensorboard.compat.proto.attr_value_pb2 import NameAttrList

import runnel as tf
from runnel.graph import registry
from runnel.graph.graph_def import graph_to_graph_def, operation_to_node_def


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def every_kind():
    """An op type with an attribute of every kind, for the duration of a test."""
    op = tf.register_op(
        "EveryKindOfAttribute",
        attrs=[
            "i: int",
            "f: float",
            "b: bool",
            "s: string",
            "t: type",
            "p: shape",
            "v: tensor",
            "u: func",
            "li: list(int)",
            "lf: list(float)",
            "lb: list(bool)",
            "ls: list(string)",
            "lt: list(type)",
            "lp: list(shape)",
            "lv: list(tensor)",
            "lu: list(func)",
        ],
        stateful=True,
    )
    yield op
    del registry._REGISTRY["EveryKindOfAttribute"]


def attributes_of_every_kind():
    function = NameAttrList(name="square")
    function.attr["T"].type = 1
    return {
        "i": -5,
        "f": 0.5,
        "b": True,
        "s": "text",
        "t": tf.bfloat16,
        "p": tf.TensorShape([None, 3]),
        "v": np.array([[1, 2]], np.int16),
        "u": function,
        "li": [1, -2],
        "lf": [0.5],
        "lb": [True, False],
        "ls": ["a", b"\xff"],
        "lt": [tf.float32, tf.string],
        "lp": [tf.TensorShape(None), tf.TensorShape([])],
        "lv": [np.array(1.5), np.array([b"x"], object)],
        "lu": [NameAttrList(name="cube")],
    }


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    return a == b


def test_inputs_controls_and_devices(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    first, second = tf.identity_n([x, x], name="both")
    del first
    with tf.device("/job:ps/cpu:0"), tf.control_dependencies([x.op]):
        y = tf.identity(second, name="y")
    node = y.op.node_def
    assert (node.name, node.op, node.device) == ("y", "Identity", "/job:ps/device:CPU:0")
    assert list(node.input) == ["both:1", "^x"]
    assert node.attr["T"].type == tf.float32.as_datatype_enum
    assert list(graph.get_operation_by_name("both").node_def.input) == ["x", "x"]


def test_versions_and_order(graph):
    names = [tf.constant(i, name=f"c{i}").op.name for i in range(5)]
    graph_def = graph.as_graph_def()
    assert [node.name for node in graph_def.node] == names
    assert graph_def.versions.producer == 134
    assert graph_def.versions.min_consumer == 0


def test_from_version_gives_what_is_new(graph):
    tf.constant(1.0, name="old")
    version = graph.version
    tf.constant(2.0, name="new")
    assert [n.name for n in graph.as_graph_def(from_version=version).node] == ["new"]


def test_add_shapes(graph):
    tf.placeholder(tf.float32, [None, 3], name="x")
    tf.placeholder(tf.float32, name="y")
    tf.no_op(name="z")
    x, y, z = graph.as_graph_def(add_shapes=True).node
    assert [d.size for d in x.attr["_output_shapes"].list.shape[0].dim] == [-1, 3]
    assert y.attr["_output_shapes"].list.shape[0].unknown_rank
    assert len(z.attr["_output_shapes"].list.shape) == 0
    assert "_output_shapes" not in graph.as_graph_def().node[0].attr


def test_colocation_is_the_class_attribute(graph):
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.constant(2.0, name="b")
    assert list(b.op.node_def.attr["_class"].list.s) == [b"loc:@a"]


def test_constants_keep_their_element_type(graph):
    for dtype in (tf.qint8, tf.int8, tf.bfloat16, tf.string):
        value = ["a"] if dtype is tf.string else [1, 2]
        node = tf.constant(value, dtype).op.node_def
        assert node.attr["value"].tensor.dtype == dtype.as_datatype_enum
        assert node.attr["dtype"].type == dtype.as_datatype_enum


def test_attributes_of_every_kind_round_trip(graph, every_kind):
    given = attributes_of_every_kind()
    op = every_kind(name="op", **given)
    attrs = op.node_def.attr
    assert attrs["i"].i == -5 and attrs["f"].f == 0.5 and attrs["b"].b is True
    assert attrs["s"].s == b"text" and attrs["t"].type == 14
    assert [d.size for d in attrs["p"].shape.dim] == [-1, 3]
    assert attrs["u"].func.name == "square"
    assert list(attrs["ls"].list.s) == [b"a", b"\xff"]
    with tf.Graph().as_default():
        (again,) = tf.import_graph_def(graph.as_graph_def(), return_elements=["op"], name="")
    assert set(again.attrs) == set(given)
    for name, value in given.items():
        assert same(again.attrs[name], value), name


def test_empty_lists_are_present(graph, every_kind):
    given = {k: [] if k.startswith("l") else v for k, v in attributes_of_every_kind().items()}
    op = every_kind(name="op", **given)
    assert op.node_def.attr["li"].WhichOneof("value") == "list"
    with tf.Graph().as_default():
        (again,) = tf.import_graph_def(graph.as_graph_def(), return_elements=["op"], name="")
    assert all(again.attrs[k] == [] for k in given if k.startswith("l"))


def test_attributes_with_an_underscore_go_by_their_python_type(graph):
    op = tf.no_op()
    given = {
        "_i": 3,
        "_f": 0.25,
        "_b": False,
        "_s": "s",
        "_t": tf.int64,
        "_p": tf.TensorShape([2]),
        "_v": np.array([1.0, 2.0]),
        "_l": ["a", "b"],
        "_e": [],
    }
    for name, value in given.items():
        op._set_attr(name, value)
    node = op.node_def
    kinds = {name: node.attr[name].WhichOneof("value") for name in given}
    assert kinds == {
        **{"_i": "i", "_f": "f", "_b": "b", "_s": "s", "_t": "type", "_p": "shape"},
        **{"_v": "tensor", "_l": "list", "_e": "list"},
    }
    with tf.Graph().as_default():
        (again,) = tf.import_graph_def(graph.as_graph_def(), return_elements=["NoOp"])
    for name, value in given.items():
        assert same(again.attrs[name], value), name


def test_an_attribute_that_cannot_be_written_is_named(graph):
    op = tf.no_op(name="strange")
    op._set_attr("_x", object())
    with pytest.raises(TypeError, match="'_x' of 'strange'"):
        operation_to_node_def(op)


def test_constants_beyond_two_gibibytes_are_refused(graph, monkeypatch):
    tf.constant(np.arange(6.0), name="large")
    monkeypatch.setattr("runnel.graph.graph_def.MAX_BYTES", 40)
    with pytest.raises(ValueError, match="2 GiB.*'large'"):
        graph_to_graph_def(graph)


def test_str_of_an_operation_is_its_node_def(graph):
    assert 'op: "NoOp"' in str(tf.no_op())


def test_ten_thousand_nodes_take_about_a_second(graph):
    x = tf.constant(1.0)
    for _ in range(5000):
        x = tf.add(tf.identity(x), x)
    start = time.perf_counter()
    graph_def = graph.as_graph_def()
    with tf.Graph().as_default() as other:
        tf.import_graph_def(graph_def, name="")
    seconds = time.perf_counter() - start
    assert [op.name for op in other.get_operations()] == [n.name for n in graph_def.node]
    assert seconds < 5  # about 0.3 s on an idle machine
