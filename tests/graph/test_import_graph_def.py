"""Importing a GraphDef: names, maps, devices, shapes."""

import subprocess
import sys

import numpy as np
import pytest
from tensorboard.compat.proto.op_def_pb2 import OpList

import runnel as tf
from runnel.graph import registry
from tests.graph.graph_def_text import FLOAT, const, graph_def, identity, node


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def names(g):
    return [op.name for op in g.get_operations()]


def value_of(fetch):
    with tf.Session() as sess:
        return sess.run(fetch)


def test_the_prefix(graph):
    gd = graph_def(const("a", 3.0) + identity("b", "a"))
    assert tf.import_graph_def(gd) is None
    tf.import_graph_def(gd)
    tf.import_graph_def(gd, name="model")
    with tf.name_scope("outer"):
        tf.import_graph_def(gd, name="inner")
    assert names(graph) == [
        *("import/a", "import/b", "import_1/a", "import_1/b", "model/a", "model/b"),
        *("outer/inner/a", "outer/inner/b"),
    ]
    assert value_of("outer/inner/b:0") == 3.0


def test_an_empty_name_adds_no_prefix_and_keeps_names_unique(graph):
    tf.constant(0.0, name="a")
    gd = graph_def(const("a", 3.0) + const("a_1", 4.0) + identity("b", "a"))
    b, a = tf.import_graph_def(gd, name="", return_elements=["b:0", "a"])
    # "a" is taken, and "a_1" is another node of the import.
    assert names(graph) == ["a", "a_2", "a_1", "b"]
    assert a.name == "a_2" and value_of(b) == 3.0
    assert tf.constant(0.0, name="b").op.name == "b_1"


def test_return_elements(graph):
    gd = graph_def(const("a") + node("n", "IdentityN", "a", "a", T="list { type: 1 type: 1 }"))
    a, n, n1, n0 = tf.import_graph_def(gd, return_elements=["a", "n", "n:1", "n:0"])
    assert a is graph.get_operation_by_name("import/a")
    assert (n1, n0) == (n.outputs[1], n.outputs[0])
    assert tf.import_graph_def(gd, return_elements=[]) == []


def test_nodes_come_in_any_order_and_keep_theirs_where_they_can(graph):
    gd = graph_def(identity("c", "b") + const("z") + identity("b", "a") + const("a", 5.0))
    (c,) = tf.import_graph_def(gd, return_elements=["c:0"], name="")
    assert names(graph) == ["z", "a", "b", "c"]
    assert value_of(c) == 5.0


def test_a_long_chain_backwards(graph):
    chain = [identity(f"i{i}", f"i{i + 1}") for i in range(3000)]
    gd = graph_def("".join(chain) + const("i3000", 7.0))
    (first,) = tf.import_graph_def(gd, return_elements=["i0:0"])
    assert value_of(first) == 7.0


def test_input_map(graph):
    gd = graph_def(
        const("a")
        + node("n", "IdentityN", "a", "a", T="list { type: 1 type: 1 }")
        + node("sum", "AddV2", "n:0", "n:1", T=FLOAT)
        + node("after", "Identity", "sum", "^n", T=FLOAT)
    )
    two, ten = tf.constant(2.0), tf.constant(10.0)
    fence = tf.no_op()
    out, n1, after = tf.import_graph_def(
        gd, {"n": two, "n:1": ten, "^n": fence}, ["sum:0", "n:1", "after"]
    )
    assert list(out.op.inputs) == [two, ten]
    assert n1 is ten  # a replaced tensor is returned as what replaces it
    assert after.control_inputs == [fence]
    assert "import/n" in names(graph)
    assert value_of(out) == 12.0


def test_input_map_of_plain_values(graph):
    gd = graph_def(const("a") + const("b") + node("sum", "AddV2", "a", "b", T=FLOAT))
    (out,) = tf.import_graph_def(gd, {"a:0": 2.0, "b:0": np.float32(3)}, ["sum:0"])
    assert value_of(out) == 5.0
    with pytest.raises(ValueError, match="non-empty name"):
        tf.import_graph_def(gd, {"a:0": 2.0}, name="")


def test_input_map_breaks_a_cycle(graph):
    gd = graph_def(identity("a", "b") + identity("b", "a"))
    (b,) = tf.import_graph_def(gd, {"b:0": tf.constant(4.0)}, ["a:0"])
    assert value_of(b) == 4.0


def test_control_inputs(graph):
    gd = graph_def(const("a") + const("b") + node("n", "NoOp", "^a", "^b"))
    (n,) = tf.import_graph_def(gd, return_elements=["n"])
    assert [c.name for c in n.control_inputs] == ["import/a", "import/b"]


def test_control_dependencies_in_force_hold_for_what_is_imported(graph):
    fence = tf.no_op(name="fence")
    gd = graph_def(const("a") + identity("b", "a"))
    with tf.control_dependencies([fence]):
        a, b = tf.import_graph_def(gd, return_elements=["a", "b"])
    assert list(a.control_inputs) == list(b.control_inputs) == [fence]


def test_defaults_are_filled_in(graph):
    gd = graph_def(node("x", "Placeholder", dtype=FLOAT) + const("a", [[1.0]]))
    (x,) = tf.import_graph_def(gd, return_elements=["x:0"])
    assert x.dims is None and x.op.attrs["shape"] == tf.TensorShape(None)


def test_old_placeholders_could_not_be_scalars(graph):
    text = node("x", "Placeholder", dtype=FLOAT, shape="shape { }")
    (old,) = tf.import_graph_def(graph_def(text, producer=20), return_elements=["x:0"])
    (new,) = tf.import_graph_def(graph_def(text, producer=22), return_elements=["x:0"])
    assert old.dims is None and new.dims == ()


def test_attributes_with_an_underscore_are_kept(graph):
    gd = graph_def(node("n", "NoOp", _mark='s: "x"', _n="i: 3", _l='list { s: "p" }'))
    (n,) = tf.import_graph_def(gd, return_elements=["n"])
    assert n.attrs == {"_mark": "x", "_n": 3, "_l": ["p"]}


def test_a_gradient_override_survives(graph):
    gd = graph_def(const("a") + node("b", "Identity", "a", T=FLOAT, _gradient_op_type='s: "My"'))
    (b,) = tf.import_graph_def(gd, return_elements=["b"])
    assert b.gradient_name == "My"


def test_devices_within_the_scopes_in_force(graph):
    text = node("a", "NoOp") + node("b", "NoOp").replace("op:", 'device: "/cpu:0" op:')
    text += node("c", "NoOp").replace("op:", 'device: "/job:worker/task:3" op:')
    gd = graph_def(text)
    a, b, c = tf.import_graph_def(gd, return_elements=["a", "b", "c"])
    assert [o.device for o in (a, b, c)] == ["", "/device:CPU:0", "/job:worker/task:3"]
    with tf.device("/job:ps/task:1"):
        a, b, c = tf.import_graph_def(gd, return_elements=["a", "b", "c"])
    assert [o.device for o in (a, b, c)] == [
        *("/job:ps/task:1", "/job:ps/task:1/device:CPU:0", "/job:worker/task:3")
    ]
    with tf.device(lambda op: "/job:ps" if op.name.endswith("a") else "/gpu:1"):
        a, b, c = tf.import_graph_def(gd, return_elements=["a", "b", "c"])
    assert [o.device for o in (a, b, c)] == [*("/job:ps", "/device:GPU:1", "/device:GPU:1")]


def test_colocation_follows_the_new_names(graph):
    text = node("a", "NoOp").replace("op:", 'device: "/cpu:0" op:')
    text += node("b", "NoOp", _class='list { s: "loc:@a" s: "other" }')
    tf.no_op(name="a")
    gd = graph_def(text)
    (b,) = tf.import_graph_def(gd, return_elements=["b"])
    assert set(b.colocation_groups()) == {b"loc:@import/a", b"other"}
    assert b.device == "/device:CPU:0"
    (b,) = tf.import_graph_def(gd, return_elements=["b"], name="")
    assert set(b.colocation_groups()) == {b"loc:@a_1", b"other"}


def test_recorded_shapes_are_used(graph):
    shapes = "list { shape { dim { size: 2 } } }"
    gd = graph_def(node("x", "Placeholder", dtype=FLOAT, _output_shapes=shapes))
    (x,) = tf.import_graph_def(gd, return_elements=["x:0"])
    assert x.dims == (2,) and "_output_shapes" not in x.op.attrs


def test_references_and_updates(graph):
    shape = "shape { dim { size: 2 } }"
    gd = graph_def(
        node("v", "VariableV2", dtype=FLOAT, shape=shape)
        + const("zero", [1.0, 2.0])
        + node("set", "Assign", "v", "zero", T=FLOAT)
        + identity("read", "v")
    )
    init, read = tf.import_graph_def(gd, return_elements=["set", "read:0"])
    with tf.Session() as sess:
        sess.run(init)
        np.testing.assert_array_equal(sess.run(read), [1.0, 2.0])


def test_a_newer_writers_attributes(graph):
    gd = graph_def(node("n", "NoOp", shiny="b: false"))
    op_list = OpList()
    op = op_list.op.add(name="NoOp")
    op.attr.add(name="shiny", type="bool").default_value.b = False
    (n,) = tf.import_graph_def(gd, return_elements=["n"], producer_op_list=op_list)
    assert "shiny" not in n.attrs
    with pytest.raises(ValueError, match="'n'.*'shiny'.*producer_op_list"):
        tf.import_graph_def(gd)
    op.attr[0].default_value.b = True
    with pytest.raises(ValueError, match="'shiny'"):
        tf.import_graph_def(gd, producer_op_list=op_list)
    with pytest.raises(TypeError, match="OpList"):
        tf.import_graph_def(gd, producer_op_list=[op])


def test_a_loops_back_edge(graph, monkeypatch):
    """A Merge takes the next iteration's value from a node that depends on the Merge."""
    for name, inputs, outputs, attrs in (
        ("Merge", "inputs: N * T", "output: T, value_index: int32", "T: type, N: int >= 1"),
        ("NextIteration", "data: T", "output: T", "T: type"),
    ):
        if name not in tf.registered_ops():
            op = registry.OpDef(name, inputs, outputs, attrs)
            monkeypatch.setitem(registry._REGISTRY, name, op)
    gd = graph_def(
        const("start")
        + node("merge", "Merge", "start", "next", T=FLOAT, N="i: 2")
        + identity("body", "merge")
        + node("next", "NextIteration", "body", T=FLOAT)
    )
    merge, following = tf.import_graph_def(gd, return_elements=["merge", "next:0"], name="")
    assert names(graph) == ["start", "merge", "body", "next"]
    assert merge.inputs[1] is following
    assert merge.outputs[0].dims is None  # nothing is known of the next iteration's shape
    assert following.consumers() == [merge]
    again = graph.as_graph_def()
    assert list(again.node[1].input) == ["start", "next"]


def test_importing_runnel_registers_every_op():
    """A GraphDef may hold any of them, whatever else the program has used."""
    program = """
import importlib, pkgutil, runnel, runnel.ops
before = set(runnel.registered_ops())
for module in pkgutil.walk_packages(runnel.__path__, "runnel."):
    importlib.import_module(module.name)
print(sorted(set(runnel.registered_ops()) - before))
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"


def test_bytes_are_not_a_graph_def():
    data = graph_def(const("a")).SerializeToString()
    with pytest.raises(TypeError, match="GraphDef.FromString"):
        tf.import_graph_def(data)
    with pytest.raises(TypeError, match="GraphDef"):
        tf.import_graph_def(None)


def test_a_finalized_graph_is_left_alone(graph):
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.import_graph_def(graph_def(const("a")))


def test_a_graph_loads_the_modules_of_its_own_operations_only():
    program = (
        "import sys\n"
        "import runnel as tf\n"
        "from runnel.graph.registry import find_op_def\n"
        "def graph(*types):\n"
        "    made = tf.GraphDef()\n"
        "    for number, op in enumerate(types):\n"
        "        made.node.add(name=f'n{number}', op=op)\n"
        "    return made\n"
        "tf.import_graph_def(graph('NoOp'))\n"
        "before = 'runnel.ops.training_updates' in sys.modules\n"
        "found = find_op_def('ApplyGradientDescent') is not None\n"
        "print(before, found, 'runnel.image' in sys.modules)\n"
        "try:\n"
        "    tf.import_graph_def(graph('DrawBoundingBoxs'))\n"
        "except ValueError as error:\n"
        "    print('DrawBoundingBoxes' in str(error))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.split() == ["False", "True", "False", "True"]
