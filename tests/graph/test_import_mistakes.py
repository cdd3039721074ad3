"""Wrong GraphDefs: each mistake is a ValueError that names the node, and changes nothing."""

import random

import pytest
from google.protobuf.message import DecodeError

import runnel as tf
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


A = const("a")
TWO = "list { type: DT_FLOAT type: DT_FLOAT }"
HUGE = "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } tensor_content: 'a' }"

MISTAKES = {
    "unknown op": (node("n", "Idenity") + node("m", "Zzz"), r"'Idenity'.*Identity(?s:.)*'Zzz'"),
    "missing input": (identity("b", "nowhere"), "'b'.*'nowhere' is not in graph_def"),
    "missing control input": (node("b", "NoOp", "^nowhere"), "'b'.*'nowhere'"),
    "duplicate name": (A + A, "Two nodes.*'a'"),
    "no name": (node("", "NoOp"), "valid name"),
    "invalid name": (node("a b", "NoOp"), "'a b' is not a valid name"),
    "internal name": (node("_a", "NoOp"), "'_a' is not a valid name"),
    "a newline in a name": (node("a\\n", "NoOp"), "valid name"),
    "malformed input": (A + identity("b", "a:x"), "'b'.*'a:x'"),
    "an empty input": (A + identity("b", ""), "'b'.*''"),
    "negative index": (A + identity("b", "a:-1"), "'b'.*'a:-1'"),
    "output index out of range": (A + identity("b", "a:1"), "'b'.*'a:1' does not exist.*1 outputs"),
    "data after control": (A + node("b", "Identity", "^a", "a", T=FLOAT), "after a control input"),
    "too few inputs": (A + node("b", "AddV2", "a", T=FLOAT), "'b'.*takes 2 inputs.*1 are given"),
    "too many inputs": (A + node("b", "NoOp", "a"), "'b'.*takes 0 inputs.*1 are given"),
    "wrong list length": (A + node("b", "IdentityN", "a", T=TWO), "takes 2 inputs.*1 are given"),
    "wrong type of an edge": (A + identity("b", "a", "type: DT_INT32"), "'b'.*int32.*'a:0'.*float"),
    "not a reference": (A + node("b", "Assign", "a", "a", T=FLOAT), "'b'.*reference.*'a:0'"),
    "missing attribute": (A + node("b", "Identity", "a"), "'b'.*'T' is missing"),
    "unknown attribute": (node("b", "NoOp", x="i: 1"), "'b'.*no attribute 'x'"),
    "attribute of the wrong kind": (A + node("b", "Identity", "a", T="i: 1"), "'T'.*type.*int"),
    "attribute without a value": (A + node("b", "Identity", "a", T=""), "'T'.*no value"),
    "a list for a single value": (A + identity("b", "a", "list { type: 1 }"), "'T'.*a list"),
    "a single value for a list": (A + node("b", "IdentityN", "a", T=FLOAT), "'T'.*list of types"),
    "a mixed list": (
        A + node("b", "IdentityN", "a", T="list { type: 1 i: 1 }"),
        "'b'.*'T'.*list of types holds.*int",
    ),
    "a list that is too short": (node("b", "IdentityN", T="list { }"), "'b'.*'T'.*at least 1"),
    "disallowed type": (
        const("a", "x") + node("b", "AddN", "a", T="type: DT_STRING", N="i: 1"),
        "'b'.*'T' is string, but must be one of",
    ),
    "unknown type number": (A + identity("b", "a", "type: 99"), "'b'.*'T'.*99"),
    "reference as a type": (A + identity("b", "a", "type: DT_FLOAT_REF"), "'b'.*'T'.*reference"),
    "a placeholder attribute": (A + identity("b", "a", 'placeholder: "T"'), "'T'.*placeholder"),
    "an unknown attribute without value": (node("b", "NoOp", _x=""), "'b'.*'_x'.*no value"),
    "an unknown attribute of two kinds": (node("b", "NoOp", _x="list { i: 1 f: 1 }"), "several"),
    "number out of range": (node("b", "AddN", T=FLOAT, N="i: -3"), "'b'.*'N'.*-3"),
    "negative dimension": (
        node("x", "Placeholder", dtype=FLOAT, shape="shape { dim { size: -2 } }"),
        "'x'.*'shape'.*negative",
    ),
    "dimensions of an unknown rank": (
        node("x", "Placeholder", dtype=FLOAT, shape="shape { unknown_rank: true dim { size: 2 } }"),
        "'x'.*'shape'.*unknown rank",
    ),
    "a shape that cannot be counted": (
        node(
            "x",
            "Placeholder",
            dtype=FLOAT,
            shape="shape { dim { size: 9223372036854775807 } dim { size: 9 } }",
        ),
        "'x'.*'shape'.*counted",
    ),
    "constant with too little data": (
        node("a", "Const", dtype=FLOAT, value=HUGE),
        "'a'.*'value'.*tensor_content has 1",
    ),
    "constant of two types": (
        const("a").replace("value { type: 1 }", "value { type: 3 }"),
        "'a'.*'dtype' is int32",
    ),
    "invalid device": (node("b", "NoOp").replace("op:", 'device: "/what:0" op:'), "'b'.*'what:0'"),
    "cycle": (
        A + identity("x", "y") + identity("y", "z") + identity("z", "x") + identity("w", "x"),
        "cycle: '[xyz]' -> '[xyz]' -> '[xyz]' -> '[xyz]'",
    ),
    "cycle through control edges": (node("x", "NoOp", "^y") + node("y", "NoOp", "^x"), "cycle"),
    "a node that is its own input": (identity("x", "x"), "cycle: 'x' -> 'x'"),
    "colocation with nobody": (node("b", "NoOp", _class='list { s: "loc:@a" }'), "'b'.*'a'"),
    "malformed colocation": (node("b", "NoOp", _class="i: 1"), "'b'.*'_class'"),
    "malformed recorded shapes": (node("b", "NoOp", _output_shapes="i: 1"), "_output_shapes"),
    "too few recorded shapes": (
        const("a").replace("op:", 'attr { key: "_output_shapes" value { list { } } } op:'),
        "'a'.*0 shapes for 1 outputs",
    ),
    "recorded shapes that contradict": (
        const("a").replace(
            "op:",
            'attr { key: "_output_shapes" value { list { shape { dim { size: 3 } } } } } op:',
        ),
        "'a'.*_output_shapes",
    ),
    "shapes that do not match": (
        const("a", [1.0, 2.0])
        + const("c", [1.0, 2.0, 3.0])
        + node("b", "AddV2", "a", "c", T=FLOAT),
        "'b'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_and_change_nothing(graph, mistake):
    text, message = MISTAKES[mistake]
    tf.constant(0.0, name="before")
    with pytest.raises(ValueError, match=message):
        tf.import_graph_def(graph_def(text))
    with pytest.raises(ValueError, match=message):
        tf.import_graph_def(graph_def(const("good") + text), name="")
    assert names(graph) == ["before"]
    assert "good" not in graph.as_graph_def().SerializeToString().decode("latin1")
    # Names are free as before, and the graph still works.
    tf.import_graph_def(graph_def(const("good", 2.0)))
    assert value_of("import/good:0") == 2.0


def test_readers_that_are_too_old_are_refused(graph):
    gd = graph_def(const("a"))
    gd.versions.min_consumer = 10**6
    with pytest.raises(ValueError, match="1000000"):
        tf.import_graph_def(gd)
    gd.versions.min_consumer = 0
    gd.versions.bad_consumers.append(134)
    with pytest.raises(ValueError, match="excludes"):
        tf.import_graph_def(gd)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"input_map": {"zzz:0": 1.0}}, ValueError, "'zzz:0'"),
        ({"input_map": {"a:7": 1.0}}, ValueError, "'a:7'"),
        ({"input_map": {"^zzz": 1.0}}, ValueError, "zzz"),
        ({"input_map": {"a:": 1.0}}, ValueError, "'a:'"),
        ({"input_map": {3: 1.0}}, TypeError, "strings"),
        ({"input_map": ["a"]}, TypeError, "dictionary"),
        ({"input_map": {"a:0": 1}}, ValueError, "'b'.*float32.*int32"),
        ({"input_map": {"a:0": None}}, ValueError, "None"),
        ({"return_elements": ["zzz"]}, ValueError, "'zzz'"),
        ({"return_elements": ["a:1"]}, ValueError, "'a:1'.*1 outputs"),
        ({"return_elements": ["a:x"]}, ValueError, "'a:x'"),
        ({"return_elements": "a"}, TypeError, "list of strings"),
        ({"return_elements": [1]}, TypeError, "list of strings"),
        ({"name": "a b"}, ValueError, "'a b'"),
    ],
)
def test_bad_arguments_change_nothing(graph, arguments, error, message):
    gd = graph_def(const("a") + identity("b", "a"))
    with pytest.raises(error, match=message):
        tf.import_graph_def(gd, **arguments)
    assert names(graph) == []


def test_tensors_of_another_graph_are_refused(graph):
    with tf.Graph().as_default():
        foreign = tf.constant(1.0)
    gd = graph_def(const("a") + identity("b", "a"))
    with pytest.raises(ValueError, match="another graph"):
        tf.import_graph_def(gd, {"a:0": foreign})
    with pytest.raises(ValueError, match="not an element"):
        tf.import_graph_def(gd, {"^a": foreign.op})
    assert names(graph) == []


# Damaged files ------------------------------------------------------------------------------------


def a_varied_graph():
    """Serialized: variables, lists, strings, shapes, devices, control edges."""
    with tf.Graph().as_default() as g:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.device("/job:ps/cpu:0"):
            y = tf.add(x, [1.0, 2.0, 3.0], name="y")
        tf.identity_n([y, tf.constant(["a", "bc"])], name="pair")
        with tf.control_dependencies([y]), tf.colocate_with(y):
            z = tf.add_n([x, x, y], name="z")
        tf.reshape(z, [3, -1], name="flat")
        tf.concat([x, y], axis=0, name="joined")
        tf.split(y, 3, axis=1, name="parts")
        return g.as_graph_def(add_shapes=True).SerializeToString()


def try_import(data):
    """True when it was imported, False when it was refused properly."""
    try:
        gd = tf.GraphDef.FromString(data)
    except DecodeError:
        return False
    with tf.Graph().as_default() as g:
        try:
            tf.import_graph_def(gd, name="")
        except ValueError as error:
            assert str(error)
            assert names(g) == []
            return False
        assert len(g.get_operations()) == len(gd.node)
        return True


def test_truncated_files_are_refused_or_shorter():
    data = a_varied_graph()
    assert try_import(data)
    imported = sum(try_import(data[:length]) for length in range(len(data)))
    assert imported < len(data) // 4  # only a cut between nodes leaves a GraphDef


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_are_refused_or_harmless(seed):
    data = a_varied_graph()
    chance = random.Random(seed)
    for _ in range(250):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try_import(bytes(damaged))


def test_every_single_bit_of_a_small_file():
    with tf.Graph().as_default() as g:
        tf.identity(tf.constant([1.0, 2.0], name="a"), name="b")
        data = g.as_graph_def().SerializeToString()
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            try_import(bytes(damaged))
