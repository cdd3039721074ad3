"""Graphs: names, scopes, control edges, collections, threads."""

from __future__ import annotations

import threading

import pytest

import runnel as tf


def test_operations_are_kept_in_the_order_of_construction():
    a = tf.constant(1.0, name="a")
    b = tf.identity(a, name="b")
    graph = tf.get_default_graph()
    assert [op.name for op in graph.get_operations()] == ["a", "b"]
    assert graph.get_tensor_by_name("b:0") is b
    assert graph.get_operation_by_name("a") is a.op
    assert a.consumers() == [b.op]


def test_operations_made_after_a_look_up_are_found_too():
    graph = tf.get_default_graph()
    tf.constant(1.0, name="a")
    with pytest.raises(KeyError, match="'b'"):
        graph.get_operation_by_name("b")
    b = tf.no_op(name="b")
    assert graph.get_operation_by_name("b") is b
    again = tf.no_op(name="b/")  # a name that ends in a slash is taken as it is
    c = tf.no_op(name="c")
    assert graph.get_operation_by_name("b") is again
    assert graph.get_operation_by_name("c") is c


def test_names_are_made_unique_as_in_tensorflow():
    names = [tf.no_op(name="x").name for _ in range(3)]
    assert names == ["x", "x_1", "x_2"]
    assert tf.no_op(name="x_1").name == "x_1_1"
    assert tf.no_op(name="X").name == "X_3"  # case does not distinguish


def test_name_scopes_nest_reenter_and_reset():
    with tf.name_scope("outer") as outer:
        assert tf.no_op(name="x").name == "outer/x"
        with tf.name_scope("inner"):
            assert tf.no_op(name="x").name == "outer/inner/x"
        with tf.name_scope("inner"):
            assert tf.no_op(name="x").name == "outer/inner_1/x"
        with tf.name_scope(None):
            assert tf.no_op(name="root").name == "root"
    with tf.name_scope(outer):
        assert tf.no_op(name="y").name == "outer/y"
    with tf.name_scope("outer"):
        assert tf.no_op(name="z").name == "outer_1/z"


@pytest.mark.parametrize("bad", ["_a", "a b", "a:0", ""])
def test_invalid_names_are_refused(bad):
    if bad:
        with pytest.raises(ValueError, match="valid"):
            tf.no_op(name=bad)
    with pytest.raises(ValueError), tf.name_scope("a b"):
        pass


def test_looking_up_what_is_not_there_says_what_is_wrong():
    tf.constant(1.0, name="a")
    graph = tf.get_default_graph()
    with pytest.raises(KeyError, match="not in the graph"):
        graph.get_tensor_by_name("b:0")
    with pytest.raises(ValueError, match="Did you mean 'a:0'"):
        graph.get_tensor_by_name("a")
    with pytest.raises(KeyError, match="only 1 outputs"):
        graph.get_tensor_by_name("a:7")
    with pytest.raises(ValueError, match="operation is needed"):
        graph.get_operation_by_name("a:0")
    with pytest.raises(TypeError):
        graph.as_graph_element(object())


def test_control_dependencies_nest_and_clear():
    a, b = tf.no_op(name="a"), tf.no_op(name="b")
    with tf.control_dependencies([a]):
        c = tf.no_op(name="c")
        with tf.control_dependencies([b]):
            d = tf.no_op(name="d")
        with tf.control_dependencies(None):
            e = tf.no_op(name="e")
    assert list(c.control_inputs) == [a]
    assert list(d.control_inputs) == [a, b]
    assert list(e.control_inputs) == []


def test_a_tensor_can_be_a_control_dependency_but_not_twice():
    x = tf.constant(1.0)
    with tf.control_dependencies([x]):
        y = tf.identity(x)
        z = tf.no_op()
    assert list(z.control_inputs) == [x.op]
    assert list(y.op.control_inputs) == []  # the data edge says it already


def test_device_scopes_merge_from_the_outside_in():
    with tf.device("/job:worker/task:1"):
        with tf.device("/gpu:0"):
            a = tf.no_op()
        with tf.device("/cpu:*"):
            b = tf.no_op()
        with tf.device(None):
            c = tf.no_op()
    assert a.device == "/job:worker/task:1/device:GPU:0"
    assert b.device == "/job:worker/task:1/device:CPU:*"
    assert c.device == ""


def test_device_functions_see_the_operation():
    def place(op):
        return "/job:ps" if op.type == "Const" else "/job:worker"

    with tf.device(place):
        const, other = tf.constant(1.0), tf.no_op()
        with tf.device("/gpu:1"):
            inner = tf.no_op()
    assert (const.op.device, other.device) == ("/job:ps", "/job:worker")
    assert inner.device == "/job:worker"  # it replaces what the inner scope chose, as in TensorFlow


def test_a_bad_device_is_refused():
    with pytest.raises(ValueError, match="not understood"), tf.device("/nonsense:1"):
        pass
    with pytest.raises(TypeError), tf.device(3):
        pass


def test_colocation_is_recorded_and_shares_the_device():
    with tf.device("/job:ps/task:2"):
        a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.no_op(name="b")
    assert b.colocation_groups() == [b"loc:@a"]
    assert b.device == "/job:ps/task:2"


def test_collections():
    graph = tf.get_default_graph()
    x = tf.constant(1.0, name="s/x")
    graph.add_to_collection("things", x)
    graph.add_to_collections(["things", "others"], 5)
    assert graph.get_collection("things") == [x, 5]
    assert graph.get_collection("things", scope="s/") == [x]
    graph.get_collection("things").append(6)  # a copy
    assert graph.get_collection("things") == [x, 5]
    graph.get_collection_ref("things").append(6)
    assert graph.get_collection("things") == [x, 5, 6]
    graph.clear_collection("things")
    assert graph.get_collection("things") == []


def test_a_finalized_graph_cannot_change():
    graph = tf.get_default_graph()
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.no_op()
    with pytest.raises(RuntimeError, match="finalized"):
        graph.add_to_collection("x", 1)


def test_graphs_are_separate():
    a = tf.constant(1.0)
    other = tf.Graph()
    with other.as_default():
        b = tf.constant(2.0)
        assert tf.get_default_graph() is other
    assert a.graph is not b.graph
    with pytest.raises(ValueError, match="different graph"):
        tf.add(a, b)
    # An operation goes to the graph of its inputs, wherever it is built.
    assert tf.identity(b).graph is other


def test_threads_build_one_graph_with_scopes_of_their_own():
    graph = tf.get_default_graph()
    failures = []

    def build(number):
        try:
            with graph.as_default(), tf.name_scope(f"t{number}"), tf.device(f"/job:j{number}"):
                for _ in range(200):
                    op = tf.no_op(name="x")
                    assert op.name.startswith(f"t{number}/x")
                    assert op.device == f"/job:j{number}"
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=build, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    operations = graph.get_operations()
    assert len(operations) == 1600
    assert len({op.name for op in operations}) == 1600
    assert [op.id for op in operations] == list(range(1600))


def test_reset_default_graph_inside_a_block_is_an_error():
    with pytest.raises(AssertionError, match="as_default"):
        tf.reset_default_graph()


def test_a_tensor_in_an_if_says_what_to_use_instead():
    with pytest.raises(TypeError, match=r"tf\.cond"):
        bool(tf.constant(True))
    with pytest.raises(TypeError, match=r"tf\.unstack"):
        list(tf.constant([1]))


def test_an_operation_knows_the_line_that_made_it():
    op = tf.no_op()  # this very line
    site = op.creation_site()[-1]
    assert __file__ in site
    assert "this very line" in site


def test_set_shape_narrows_and_contradictions_are_refused():
    x = tf.placeholder(tf.float32, [None, 3])
    x.set_shape([2, None])
    assert x.shape.as_list() == [2, 3]
    with pytest.raises(ValueError, match="Placeholder:0"):
        x.set_shape([5, 3])


def test_a_mutation_after_the_fact_is_seen_by_sessions():
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    y = tf.identity(a)
    with tf.Session() as sess:
        assert sess.run(y) == 1.0
        y.op._update_input(0, b)
        assert sess.run(y) == 2.0


def test_a_cycle_is_reported_with_its_operations():
    a = tf.identity(tf.constant(1.0), name="a")
    b = tf.identity(a, name="b")
    a.op._update_input(0, b)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="cycle.*'a'") as e,
    ):
        sess.run(b)
    assert "'b'" in str(e.value)


def test_a_long_chain_needs_no_recursion():
    x = tf.constant(1.0)
    for _ in range(20_000):
        x = tf.identity(x)
    with tf.Session() as sess:
        assert sess.run(x) == 1.0
