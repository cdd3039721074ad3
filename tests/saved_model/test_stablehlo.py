"""StableHLO of an inference graph, read back and run by JAX."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import runnel as tf

jax = pytest.importorskip("jax")
export = pytest.importorskip("jax.export")


def dense():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.layers.dense(tf.layers.dense(x, 8, tf.nn.relu), 3)
    return x, tf.nn.softmax(y)


def convolution():
    x = tf.placeholder(tf.float32, [7, 8, 8, 3], name="x")
    y = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
    y = tf.layers.batch_normalization(tf.layers.max_pooling2d(y, 2, 2))
    return x, tf.layers.dense(tf.layers.flatten(y), 5)


def loop():
    x = tf.placeholder(tf.float32, [7, 4], name="x")
    y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.tanh(a) * 2.0), [0, x])[1]
    return x, tf.cond(tf.reduce_sum(y) > 0.0, lambda: y, lambda: -y)


def variables_in_a_loop():
    x = tf.placeholder(tf.float32, [7, 4], name="x")
    w, b = (tf.Variable([1.0, 2.0, 3.0, 4.0], use_resource=kind) for kind in (False, True))
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a * w) + b), [0, x])[1]
    return x, tf.cond(tf.reduce_sum(y) > 0.0, lambda: y + b, lambda: y - b)


@pytest.mark.parametrize("network", [dense, convolution, loop, variables_in_a_loop])
def test_what_was_exported_computes_the_same(tmp_path, network):
    x, y = network()
    path = tmp_path / "model.stablehlo"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        model = tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": y})
        if importlib.util.find_spec("flatbuffers") is not None:
            tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": y}, path)
            model = export.deserialize(bytearray(path.read_bytes()))
        for batch in (1, 7) if x.shape.as_list()[0] is None else (7,):
            given = np.random.default_rng(batch).normal(size=(batch, *x.shape.as_list()[1:]))
            given = given.astype(np.float32)
            expected = sess.run(y, {x: given})
            found = np.asarray(model.call({"x": given})["y"])
            np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


def test_the_text_is_stablehlo_and_later_steps_do_not_change_it(tmp_path):
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 2.0], use_resource=True)
    y, doubled = x * v, x * 2.0
    with tf.Session() as sess:
        sess.run(v.initializer)
        exported = tf.saved_model.export_stablehlo(
            sess, {"x": x}, {"y": y, "doubled": doubled}, tmp_path / "model.mlir"
        )
        sess.run(v.assign([0.0, 0.0]))
    assert "stablehlo.multiply" in (tmp_path / "model.mlir").read_text()
    found = exported.call({"x": np.array([3.0, 4.0], np.float32)})
    assert found["y"].tolist() == [3.0, 8.0] and found["doubled"].tolist() == [6.0, 8.0]


def test_what_cannot_be_exported_is_named():
    x = tf.placeholder(tf.float32, [2], name="x")
    noisy = tf.add(x, tf.random_normal([2]), name="noisy")
    called = tf.py_func(lambda a: a, [x], tf.float32, name="called")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="random numbers"):
            tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": noisy})
        with pytest.raises(tf.errors.InvalidArgumentError, match="called"):
            tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": called})
        with pytest.raises(ValueError, match="No output depends on the input 'x'"):
            tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": tf.constant(1.0)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="whole shapes"):
            images = tf.placeholder(tf.float32, [None, 4, 4, 1])
            made = tf.nn.conv2d(images, tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "SAME")
            tf.saved_model.export_stablehlo(sess, {"x": images}, {"y": made})
        with pytest.raises(ValueError, match="rank"):
            free = tf.placeholder(tf.float32, None)
            tf.saved_model.export_stablehlo(sess, {"x": free}, {"y": free * 2.0})
