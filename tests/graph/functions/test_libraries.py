"""Libraries of functions that are wrong: an error that says why, and nothing is changed."""

from __future__ import annotations

import copy
import random
import re
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import runnel as tf

FILES = Path(__file__).parents[2] / "recorded" / "files"
FLOAT = "type: DT_FLOAT"


def node(name, op, *inputs, **attrs):
    parts = [f'name: "{name}" op: "{op}"', *(f'input: "{i}"' for i in inputs)]
    parts += [f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items()]
    return " ".join(parts)


def function(name, inputs, outputs, nodes, returned, attrs=""):
    arguments = "".join(f'input_arg {{ name: "{n}" {kind} }} ' for n, kind in inputs.items())
    results = "".join(f'output_arg {{ name: "{n}" {kind} }} ' for n, kind in outputs.items())
    signature = f'signature {{ name: "{name}" {arguments} {results} {attrs} }}'
    body = " ".join(f"node_def {{ {text} }}" for text in nodes)
    ret = " ".join(f'ret {{ key: "{k}" value: "{v}" }}' for k, v in returned.items())
    return f"function {{ {signature} {body} {ret} }}"


def graph_def(nodes, functions):
    text = " ".join(f"node {{ {one} }}" for one in nodes)
    text += f" library {{ {' '.join(functions)} }} versions {{ producer: 134 }}"
    return text_format.Parse(text, tf.GraphDef())


X = node("x", "Placeholder", dtype=FLOAT, shape="shape { unknown_rank: true }")


def double(name="double", nodes=None, returned=None):
    """A function of one tensor."""
    nodes = nodes or [node("sum", "Add", "a", "a", T=FLOAT)]
    returned = returned or {"b": "sum:z:0"}
    return function(name, {"a": FLOAT}, {"b": FLOAT}, nodes, returned)


def calling(name, callee, *further):
    """A function that calls another one."""
    inner = [node("call", callee, "a"), *further]
    return double(name, inner, {"b": "call:b:0"})


def imported(given, feed=2.0):
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.import_graph_def(given, return_elements=["x:0", "y:0"])
        return sess.run(y, {x: feed})


def refused(given, words):
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match=words):
            tf.import_graph_def(given)
        assert not graph.get_operations()


def call(**attrs):
    types = {"Tin": "list { type: DT_FLOAT }", "Tout": "list { type: DT_FLOAT }"}
    attrs = {"f": 'func { name: "double" }', **types, **attrs}
    return node("y", "PartitionedCall", "x", **attrs)


def test_calls_by_type_and_by_attribute_are_the_same():
    assert imported(graph_def([X, node("y", "double", "x")], [double()])) == 4.0
    assert imported(graph_def([X, call()], [double()])) == 4.0


def test_attributes_of_a_call_stand_in_for_placeholders():
    attr = 'attr { name: "T" type: "type" }'
    nodes = [node("sum", "Add", "a", "a", T='placeholder: "T"')]
    kind = {"a": 'type_attr: "T"'}
    general = function("f", kind, {"b": 'type_attr: "T"'}, nodes, {"b": "sum:z:0"}, attr)
    assert imported(graph_def([X, node("y", "f", "x", T=FLOAT)], [general])) == 4.0
    refused(graph_def([X, node("y", "f", "x")], [general]), "'f'.*attribute 'T' is missing")


def test_lists_of_arguments_and_results():
    attr = 'attr { name: "N" type: "int" }'
    many = 'type: DT_FLOAT number_attr: "N"'
    nodes = [node("twice", "double", "some:1")]
    nodes.append(node("n", "IdentityN", "some:0", "twice:b:0", T="list { type: [1, 1] }"))
    f = function("f", {"some": many}, {"b": many}, nodes, {"b": "n:output"}, attr)
    given = graph_def(
        [X, node("f", "f", "x", "x", N="i: 2"), node("y", "Identity", "f:1", T=FLOAT)],
        [f, double()],
    )
    assert imported(given) == 4.0


def test_names_stay_apart():
    nodes = [X, node("y", "double", "x"), node("y/sum", "Identity", "y", T=FLOAT)]
    given = graph_def(nodes, [double()])
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(given, name="")
        assert sess.run("y/sum:0", {"x:0": 1.0}) == 2.0
        assert {op.name for op in graph.get_operations()} == {"x", "y", "y/sum", "y/sum_1"}


def test_outputs_of_a_call_can_be_fed_replaced_and_awaited():
    then = node("z", "Identity", "y", T=FLOAT)
    given = graph_def([X, node("y", "double", "x"), then], [double()])
    with tf.Graph().as_default(), tf.Session() as sess:
        (z,) = tf.import_graph_def(given, {"y:0": tf.constant(7.0)}, return_elements=["z:0"])
        assert sess.run(z) == 7.0
        tf.import_graph_def(given, name="again")
        assert sess.run("again/z:0", {"again/y:0": 5.0}) == 5.0


@pytest.mark.parametrize(
    ("nodes", "functions", "words"),
    [
        ([X, call()], [], "'y'.*'double'.*library is empty"),
        ([X, call(f='func { name: "other" }')], [double()], "'other'.*It has double"),
        ([X, call(f="i: 3")], [double()], "'f' must name a function"),
        ([X, node("y", "double")], [double()], "takes 1 arguments, but 0"),
        ([X, node("y", "double", "x", "x")], [double()], "takes 1 arguments, but 2"),
        ([X, call(Tin="list { type: DT_INT32 }")], [double()], "'Tin' has .int32., but.*float"),
        ([X, call(Tout="list { }")], [double()], "'Tout' has .., but.*float"),
        ([X, node("y", "double", "x")], [double(), double(returned={"b": "a"})], "two functions"),
        ([X, node("y", "double", "x")], [calling("double", "double")], "cycle: double -> double"),
        (
            [X, node("y", "f", "x")],
            [calling("f", "g"), calling("g", "h"), calling("h", "g")],
            "cycle: g -> h -> g",
        ),
        ([X, node("y", "double", "x")], [double(returned={"b": "sum:z:1"})], "1 outputs 'z'"),
        ([X, node("y", "double", "x")], [double(returned={"b": "sum:q:0"})], "no output 'q'"),
        ([X, node("y", "double", "x")], [double(returned={"b": "q:z:0"})], "'q:z:0' is neither"),
        ([X, node("y", "double", "x")], [double(returned={"c": "a"})], "what it returns as 'b'"),
        (
            [X, node("y", "double", "x")],
            [double(nodes=[node("sum", "Add", "a", "a", "^zzz", T=FLOAT)])],
            "waits for 'zzz'",
        ),
        (
            [X, node("y", "double", "x")],
            [double(nodes=[node("sum", "Add", "a", T=FLOAT)])],
            "'y/sum'.*takes 2 inputs",
        ),
        (
            [X, node("y", "double", "x")],
            [double(nodes=[node("sum", "Nothing", "a")])],
            "'Nothing', of node 'y/sum'",
        ),
        (
            [X, node("y", "f", "y")],
            [double("f", returned={"b": "a"})],
            "cycle",
        ),
        (
            [X, node("y", "If", "x", then_branch='func { name: "double" }')],
            [double()],
            "'else_branch' must name a function",
        ),
        (
            [X, node("y", "While", "x", cond='func { name: "double" }')],
            [double()],
            "'body' must name a function",
        ),
        ([X, node("y", "Case", "x", branches="list { }")], [double()], "0 branches"),
    ],
)
def test_mistakes(nodes, functions, words):
    refused(graph_def(nodes, functions), words)


def test_functions_that_nothing_calls_may_be_wrong():
    given = graph_def([X, node("y", "double", "x")], [double(), calling("loop", "loop")])
    assert imported(given) == 4.0


def doubling(depth):
    """Functions that call the one before twice."""
    functions = [double("f0")]
    for i in range(1, depth):
        inner = [node("one", f"f{i - 1}", "a"), node("other", f"f{i - 1}", "one:b:0")]
        functions.append(double(f"f{i}", inner, {"b": "other:b:0"}))
    return graph_def([X, node("y", f"f{depth - 1}", "x")], functions)


def test_calls_within_bounds_are_carried_out():
    assert imported(doubling(7), feed=1.0) == 2.0**64


@pytest.mark.parametrize("depth", [30, 50, 62])
def test_an_explosion_of_calls_is_refused_before_it_happens(depth):
    refused(doubling(depth), "about (10.)?[0-9,]+ nodes; 500,000 are the most")


def test_calls_that_nest_too_deep_are_refused():
    for depth in (150, 5000):
        functions = [double("f0"), *(calling(f"f{i}", f"f{i - 1}") for i in range(1, depth))]
        random.Random(1).shuffle(functions)
        given = graph_def([X, node("y", f"f{depth - 1}", "x")], functions)
        refused(given, "more than 64 deep")


def test_large_constants_are_counted():
    values = np.arange(1 << 20, dtype=np.float32)
    constant = node("c", "Const", dtype=FLOAT, value="tensor { dtype: DT_FLOAT }")
    nodes = [constant, node("sum", "Add", "a", "c:output:0", T=FLOAT)]
    given = graph_def([X], [double(nodes=nodes)])
    proto = given.library.function[0].node_def[0].attr["value"].tensor
    proto.CopyFrom(tf.make_tensor_proto(values))
    for i in range(300):
        given.node.add(name=f"y{i}", op="double", input=["x"])
    refused(given, "bytes; .* are the most")


# Mutations ----------------------------------------------------------------------------------------


def mutate(given, chance):
    """Changes one thing of a library, or of a node that calls."""
    functions = given.library.function
    one = functions[chance.randrange(len(functions))]
    other = functions[chance.randrange(len(functions))]
    holder = chance.choice([n for n in (one.node_def, given.node) if len(n)])
    some = holder[chance.randrange(len(holder))]
    texts = [text for n in one.node_def for text in n.input] + ["x", "y:0", "a:b:0", "^x"]
    kind = chance.randrange(12)
    if kind == 0:
        functions.remove(one)
    elif kind == 1:
        functions.add().CopyFrom(one)
    elif kind == 2:
        one.signature.name = other.signature.name
    elif kind == 3 and len(one.signature.input_arg):
        del one.signature.input_arg[chance.randrange(len(one.signature.input_arg))]
    elif kind == 4 and len(one.signature.output_arg):
        one.signature.output_arg[0].type = chance.choice([1, 3, 7, 10, 20, 21, 99, 0])
    elif kind == 5 and len(one.node_def):
        del one.node_def[chance.randrange(len(one.node_def))]
    elif kind == 6 and len(some.input):
        some.input[chance.randrange(len(some.input))] = chance.choice(texts)
    elif kind == 7 and len(some.input):
        del some.input[chance.randrange(len(some.input))]
    elif kind == 8:
        for value in some.attr.values():
            if value.HasField("func"):
                value.func.name = other.signature.name
    elif kind == 9 and some.attr:
        del some.attr[chance.choice(sorted(some.attr))]
    elif kind == 10 and some.attr:
        value = some.attr[chance.choice(sorted(some.attr))]
        value.CopyFrom(chance.choice([v for n in holder for v in n.attr.values()] or [value]))
    elif kind == 11:
        some.op = chance.choice([other.signature.name, "While", "If", "Case", "PartitionedCall"])


GRAPHS = sorted(FILES.glob("tensorflow-*/functions/*.pb"))


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_a_mutated_library_is_read_or_refused(path):
    whole = tf.GraphDef.FromString(path.read_bytes())
    refusals = 0
    for seed in range(60):
        chance = random.Random(f"{path.stem} {seed}")
        given = copy.deepcopy(whole)
        for _ in range(chance.choice([1, 1, 2, 3])):
            if len(given.library.function):
                mutate(given, chance)
        with tf.Graph().as_default() as graph:
            try:
                tf.import_graph_def(given, name="")
            except ValueError as error:
                assert re.search(r"\w{3}", str(error))
                assert not graph.get_operations()
                refusals += 1
    assert refusals > 10


@pytest.mark.parametrize("op", ["If", "While", "PartitionedCall"])
def test_conditionals_and_loops_nest_as_deep_as_calls(op):
    types = "list { type: DT_FLOAT }"
    functions = [
        double("f0"),
        double("same", [node("n", "Identity", "a", T=FLOAT)], {"b": "n:output:0"}),
        function("never", {"a": FLOAT}, {"b": "type: DT_BOOL"}, [FALSE], {"b": "n:output:0"}),
    ]
    for i in range(1, 60):
        inner = f'func {{ name: "f{i - 1}" }}'
        if op == "If":
            same, uses = 'func { name: "same" }', {"then_branch": inner, "Tcond": FLOAT}
            used = node("n", op, "a", "a", else_branch=same, Tin=types, Tout=types, **uses)
        elif op == "While":
            used = node("n", op, "a", cond='func { name: "never" }', body=inner, T=types)
        else:
            used = node("n", op, "a", f=inner, Tin=types, Tout=types)
        functions.append(double(f"f{i}", [used], {"b": "n:output:0"}))
    given = graph_def([X, node("y", "f59", "x")], functions)
    assert imported(given, feed=3.0) == (3.0 if op == "While" else 6.0)


FALSE = node(
    "n",
    "Const",
    dtype="type: DT_BOOL",
    value="tensor { dtype: DT_BOOL tensor_shape { } bool_val: false }",
)
