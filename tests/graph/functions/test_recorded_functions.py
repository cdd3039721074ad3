"""Graphs with functions that TensorFlow 1.15 and 2.21 wrote (``tools/record_functions.py``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runnel as tf

FILES = Path(__file__).parents[2] / "recorded" / "files"
GRAPHS = sorted(
    path for path in FILES.glob("tensorflow-*/functions/*.pb") if path.stem != "elements"
)
FED = [np.array([[1.0, -2.0], [0.5, 0.25]], np.float32), -np.ones([2, 2], np.float32)]


def session(level):
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=config)


def test_there_are_some_of_both():
    assert {path.parents[1].name for path in GRAPHS} == {"tensorflow-1.15", "tensorflow-2.21"}


@pytest.mark.parametrize("level", [tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1])
@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_values_and_gradients_are_those_of_the_writer(path, level):
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    expected = np.load(path.with_suffix(".npz"))
    with tf.Graph().as_default(), session(level) as sess:
        x, y = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0"], name="model")
        dx = tf.gradients(y, x)[0]
        for place, fed in enumerate(FED):
            given = sess.run([y, dx], {x: fed})
            for name, value in zip(("y", "dx"), given, strict=True):
                np.testing.assert_allclose(value, expected[name][place], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_what_was_read_is_written_without_functions(path):
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        again = graph.as_graph_def()
    assert not again.library.function
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.import_graph_def(again, return_elements=["x:0", "y:0"])
        expected = np.load(path.with_suffix(".npz"))["y"][0]
        np.testing.assert_allclose(sess.run(y, {x: FED[0]}), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("path", sorted(FILES.glob("tensorflow-*/functions/elements.pb")), ids=str)
def test_datasets_give_the_elements_of_the_writer(path):
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    expected = np.load(path.with_suffix(".npz"))
    with tf.Graph().as_default(), tf.Session() as sess:
        tensors = tf.import_graph_def(graph_def, return_elements=["a:0", "b:0"])
        found = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(sess.run(tensors))
    for name, parts in zip("ab", zip(*found, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), expected[name])
