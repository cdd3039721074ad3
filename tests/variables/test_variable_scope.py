"""Variable scopes: names, sharing, defaults, custom getters."""

import threading

import numpy as np
import pytest

import runnel as tf


def test_names_of_variables_and_of_operations():
    with tf.variable_scope("a") as a:
        v = tf.get_variable("v", [1])
        with tf.variable_scope("b"):
            w = tf.get_variable("w", [1])
            x = tf.constant(1.0, name="x")
    assert [v.name, w.name, x.name] == ["a/v:0", "a/b/w:0", "a/b/x:0"]
    with tf.variable_scope(a):
        u = tf.get_variable("u", [1])
        y = tf.constant(1.0, name="y")
    assert [u.name, y.name] == ["a/u:0", "a_1/y:0"]
    assert a.name == "a" and a.original_name_scope == "a/"


def test_a_scope_can_be_opened_anywhere():
    with tf.variable_scope("a") as a:
        pass
    with tf.variable_scope("elsewhere"), tf.variable_scope(a) as again:
        assert tf.get_variable_scope() is again
        assert tf.get_variable("v", [1]).name == "a/v:0"
        assert tf.constant(1.0, name="x").name == "elsewhere/a/x:0"
    assert tf.get_variable_scope().name == ""


def test_default_names_are_made_unique():
    names = []
    for _ in range(3):
        with tf.variable_scope(None, "dense") as scope:
            names.append(scope.name)
    assert names == ["dense", "dense_1", "dense_2"]
    with tf.variable_scope("given", default_name="dense") as scope:
        assert scope.name == "given"


def test_sharing():
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [2])
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v") is v
        assert tf.get_variable("v", [2], tf.float32) is v
        with tf.variable_scope("", reuse=False) as inner:
            assert inner.reuse is True  # once shared, everything inside is
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", [2]) is v
        w = tf.get_variable("w", [2])
        assert tf.get_variable("w", [2]) is w


def test_mistakes_name_the_variable_and_where_it_was_made():
    tf.get_variable("v", [2])  # this line is in the messages
    with pytest.raises(ValueError, match=r"Variable v already exists.*test_variable_scope\.py:"):
        tf.get_variable("v", [2])
    with pytest.raises(ValueError, match="this line is in the messages"):
        tf.get_variable("v", [2])
    with tf.variable_scope("", reuse=True):
        with pytest.raises(ValueError, match=r"specified shape \(3,\) and found shape \(2,\)"):
            tf.get_variable("v", [3])
        with pytest.raises(ValueError, match="dtype int32 and found dtype float32"):
            tf.get_variable("v", [2], tf.int32)
        with pytest.raises(ValueError, match="Variable w does not exist.*AUTO_REUSE"):
            tf.get_variable("w", [2])
    with pytest.raises(ValueError, match="Variable w .*shape"):
        tf.get_variable("w")
    with pytest.raises(ValueError, match="not fully defined"):
        tf.get_variable("w", [None])
    with pytest.raises(ValueError, match="type float32.*int32"):
        tf.get_variable("w", dtype=tf.int32, initializer=tf.constant(1.0))


def test_defaults_of_a_scope_apply_inside_and_can_be_overridden():
    with tf.variable_scope("s", initializer=tf.constant_initializer(3.0), dtype=tf.float64):
        a = tf.get_variable("a", [2])
        with tf.variable_scope("t", initializer=tf.zeros_initializer()):
            b = tf.get_variable("b", [2])
        c = tf.get_variable("c", [2], tf.float32, tf.ones_initializer())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run([a, b, c])
    assert [v.tolist() for v in values] == [[3, 3], [0, 0], [1, 1]]
    assert [v.dtype.name for v in values] == ["float64", "float64", "float32"]


def test_every_default_is_inherited():
    def getter(getter, *args, **kwargs):
        return getter(*args, **kwargs)

    given = {
        "initializer": tf.ones_initializer(),
        "regularizer": tf.no_regularizer,
        "caching_device": "/cpu:0",
        "partitioner": tf.fixed_size_partitioner(2),
        "custom_getter": getter,
        "dtype": tf.float64,
        "use_resource": True,
    }
    with tf.variable_scope("s", **given), tf.variable_scope("t") as inner:
        for name, value in given.items():
            assert getattr(inner, name) is value, name


def test_setters_change_the_scope_for_what_follows():
    with tf.variable_scope("s") as scope:
        scope.set_initializer(tf.ones_initializer())
        scope.set_dtype(tf.int32)
        scope.set_regularizer(tf.no_regularizer)
        scope.set_caching_device("/cpu:0")
        scope.set_use_resource(True)
        v = tf.get_variable("v", [2])
        assert v.op.type == "VarHandleOp" and v.dtype == tf.int32
        scope.set_partitioner(tf.fixed_size_partitioner(2))
        assert len(tf.get_variable("w", [2])) == 2
        scope.set_custom_getter(lambda getter, name, *args, **kwargs: name)
        assert tf.get_variable("x") == "s/x"
        scope.reuse_variables()
        assert scope.reuse is True


def test_custom_getters_nest_with_the_innermost_called_first():
    def wrap(letter):
        def getter(getter, name, *args, **kwargs):
            return getter(f"{name}_{letter}", *args, **kwargs)

        return getter

    with tf.variable_scope("s", custom_getter=wrap("outer")):
        with tf.variable_scope("t", custom_getter=wrap("inner")):
            assert tf.get_variable("v", [1]).op.name == "s/t/v_inner_outer"
        assert tf.get_variable("v", [1]).op.name == "s/v_outer"


def test_a_custom_getter_that_knows_no_constraint_is_not_given_one():
    def old(
        getter, name, shape, dtype, initializer, regularizer, reuse, trainable, collections,
        caching_device, partitioner, validate_shape, use_resource, synchronization, aggregation,
    ):  # fmt: skip
        return getter(name, shape, dtype)

    assert tf.get_variable("v", [2], custom_getter=old).shape.as_list() == [2]


def test_variables_of_a_scope():
    with tf.variable_scope("s") as scope:
        a = tf.get_variable("a", [1])
        b = tf.get_variable("b", [1], trainable=False)
        c = tf.get_local_variable("c", [1])
    tf.get_variable("d", [1])
    assert scope.global_variables() == [a, b]
    assert scope.trainable_variables() == tf.trainable_variables("s/") == [a]
    assert scope.local_variables() == tf.local_variables() == [c]
    assert c.trainable is False


def test_the_loss_of_a_regularizer_is_collected_once():
    with tf.variable_scope("s", regularizer=lambda v: 0.5 * tf.reduce_sum(v * v)):
        v = tf.get_variable("v", [3], initializer=tf.constant_initializer(2.0))
        tf.get_variable("none", [3], regularizer=tf.no_regularizer)
        tf.get_variable("empty", [3], regularizer={})  # a library's way to say none
    with tf.variable_scope("s", reuse=True):
        tf.get_variable("v")
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name.startswith("s/v/Regularizer/")
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(loss) == 6.0


def test_threads_begin_outside_of_all_scopes():
    graph = tf.get_default_graph()
    names = []

    def work():
        with graph.as_default():
            names.append(tf.get_variable_scope().name)
            names.append(tf.get_variable("v", [1]).name)

    with tf.variable_scope("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert names == ["", "v:0"]


def test_threads_that_share_a_name_share_the_variable():
    graph = tf.get_default_graph()
    found = []
    barrier = threading.Barrier(8, timeout=30)

    def work():
        barrier.wait()
        with graph.as_default(), tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            found.append(tf.get_variable("v", [4, 4]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert tf.global_variables() == found[:1]


def test_the_default_initializer_depends_on_the_type():
    f = tf.get_variable("f", [200, 100])
    i = tf.get_variable("i", [3], tf.int32)
    b = tf.get_variable("b", [3], tf.bool)
    s = tf.get_variable("s", [3], tf.string)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        floats, integers, flags, texts = sess.run([f, i, b, s])
    limit = np.sqrt(6 / 300)
    assert 0.9 * limit < np.abs(floats).max() <= limit and abs(floats.mean()) < limit / 20
    assert integers.tolist() == [0, 0, 0] and flags.tolist() == [False] * 3
    assert texts.tolist() == [b""] * 3


def test_a_finalized_graph_can_still_be_asked_for_its_variables():
    v = tf.get_variable("v", [1])
    tf.get_default_graph().finalize()
    with tf.variable_scope("", reuse=True):
        assert tf.get_variable("v") is v


def test_a_scope_left_by_an_error_is_closed():
    with pytest.raises(RuntimeError), tf.variable_scope("s"):
        raise RuntimeError
    assert tf.get_variable_scope().name == ""
    assert tf.get_default_graph().get_name_scope() == ""


def test_creators_are_called_innermost_first():
    calls = []

    def creator(label):
        def create(next_creator, **kwargs):
            calls.append((label, kwargs["name"]))
            return next_creator(**kwargs)

        return create

    with tf.variable_creator_scope(creator("outer")), tf.variable_creator_scope(creator("inner")):
        v = tf.Variable(1.0, name="v")
    assert calls == [("inner", "v"), ("outer", "v")]
    assert v.name == "v:0"


def test_older_order_of_arguments():
    with tf.variable_op_scope([tf.constant(1.0)], None, "layer") as scope:
        assert scope.name == "layer"
