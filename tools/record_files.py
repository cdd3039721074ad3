"""Writes and reads files of jobs: checkpoints, MetaGraphs, SavedModels, events.

Runs under TensorFlow 1.15 (Python 3.7), TensorFlow 2.21 and runnel alike, so that what one writes
another reads. What TensorFlow writes is kept in ``tests/recorded/files``, and tests read it::

    python3.7 tools/record_files.py tensorflow write tests/recorded/files/tensorflow-1.15
    python tools/record_files.py runnel write /tmp/ours
    python3.7 tools/record_files.py tensorflow read /tmp/ours

``read`` goes on with each job as the file says, and compares its losses with those that the writer
has gone on with.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
from typing import Any

import numpy as np

FED = np.linspace(-1.0, 1.0, 24).reshape(4, 6).astype(np.float32)
STEPS = 3


def library(name: str) -> Any:
    """The module that programs call ``tf``."""
    if name != "tensorflow":
        return importlib.import_module(name)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


# Jobs: each gives a loss of ``x`` and an optimizer --------------------------------------------


def dense(tf: Any, x: Any) -> tuple[Any, Any]:
    """Layers with a normalisation that trains, by Adam."""
    hidden = tf.layers.dense(x, 5, tf.nn.relu, kernel_initializer=_values(tf))
    hidden = tf.layers.batch_normalization(hidden, training=True)
    return tf.layers.dense(hidden, 2, kernel_initializer=_values(tf)), tf.train.AdamOptimizer(0.1)


def convolution(tf: Any, x: Any) -> tuple[Any, Any]:
    """An image, by RMSProp."""
    images = tf.reshape(x, [-1, 3, 2, 1])
    found = tf.layers.conv2d(images, 3, 2, padding="same", kernel_initializer=_values(tf))
    found = tf.layers.max_pooling2d(tf.nn.relu(found), 2, 1)
    return tf.layers.flatten(found), tf.train.RMSPropOptimizer(0.01, momentum=0.5, centered=True)


def recurrent(tf: Any, x: Any) -> tuple[Any, Any]:
    """A loop over time of a cell, by Momentum."""
    cell = tf.nn.rnn_cell.BasicLSTMCell(3)
    with tf.variable_scope("rnn", initializer=_values(tf)):
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [-1, 3, 2]), dtype=tf.float32)
    return outputs, tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)


def rows(tf: Any, x: Any) -> tuple[Any, Any]:
    """A table of which few rows are used, resource variables, by Ftrl."""
    table = tf.get_variable("table", initializer=np.ones([7, 6], np.float32), use_resource=True)
    used = tf.nn.embedding_lookup(table, [1, 3, 1, 6])
    return used * x, tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)


def branches(tf: Any, x: Any) -> tuple[Any, Any]:
    """A conditional on data, by Adagrad; partitioned variables."""
    w = tf.get_variable(
        "w",
        [6, 2],
        initializer=tf.constant_initializer(0.5),
        partitioner=tf.fixed_size_partitioner(2),
    )
    y = tf.matmul(x, tf.convert_to_tensor(w))
    y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.sin(y), lambda: tf.square(y) + 1.0)
    return y, tf.train.AdagradOptimizer(0.1)


def frozen(tf: Any, x: Any) -> tuple[Any, Any]:
    """A convolution whose normalisation keeps its statistics, as fine-tuning has it."""
    images = tf.reshape(x, [-1, 3, 2, 1])
    found = tf.layers.conv2d(images, 3, 2, padding="same", kernel_initializer=_values(tf))
    found = tf.layers.batch_normalization(found, training=False, fused=True)
    return tf.layers.flatten(tf.nn.relu(found)), tf.train.GradientDescentOptimizer(0.1)


JOBS = [dense, convolution, recurrent, rows, branches, frozen]


def _values(tf: Any) -> Any:
    """Numbers that everybody begins with: the files say which."""
    return tf.random_uniform_initializer(-0.5, 0.5, seed=3)


# Writing --------------------------------------------------------------------------------------


def write(tf: Any, folder: str) -> None:
    """Writes everything anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for job in JOBS:
        write_job(tf, os.path.join(folder, job.__name__), job)
    write_types(tf, os.path.join(folder, "types"))
    write_model(tf, os.path.join(folder, "model"))
    write_events(tf, os.path.join(folder, "events"))


def write_job(tf: Any, folder: str, job: Any) -> None:
    """A checkpoint with its MetaGraph, and the losses of the steps that follow."""
    os.makedirs(folder)
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 6], name="x")
        y, optimizer = job(tf, x)
        loss = tf.reduce_mean(tf.square(y - 0.3), name="loss")
        train = optimizer.minimize(loss, tf.train.get_or_create_global_step(), name="train")
        tf.add_to_collection("train", train)
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run(train, {x: FED})
        tf.train.Saver().save(sess, os.path.join(folder, "m"), write_state=False)
        _keep(folder, _losses(sess))


def _losses(sess: Any) -> list[float]:
    found = []
    for _ in range(STEPS):
        found.append(float(sess.run("loss:0", {"x:0": FED})))
        sess.run("train", {"x:0": FED})
    return found


def _keep(folder: str, expected: Any) -> None:
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file)


TYPES = {
    "float32": [1.5, -2.0],
    "float64": [1.5, 1e300],
    "int8": [-3, 4],
    "int16": [-3, 4],
    "int32": [-3, 4],
    "int64": [-3, 1 << 40],
    "uint8": [3, 255],
    "bool": [True, False],
    "complex64": [1 + 2j, 3j],
    "complex128": [1 + 2j, 3j],
    "string": [b"text", b""],
    "half": [0.5, 2.0],
    "bfloat16": [0.5, 2.0],
}


def write_types(tf: Any, folder: str) -> None:
    """A variable of each type, in both formats of checkpoints."""
    os.makedirs(folder)
    with tf.Graph().as_default(), tf.Session() as sess:
        for name, values in sorted(TYPES.items()):
            tf.Variable(tf.constant(values, getattr(tf, name)), name=name)
        tf.Variable(np.zeros((0, 3), np.float32), name="empty")
        sess.run(tf.global_variables_initializer())
        for version, path in ((2, "second"), (1, "first")):
            variables = [v for v in tf.global_variables() if version == 2 or v.op.name in FIRST]
            saver = tf.train.Saver(variables, write_version=version)
            saver.save(sess, os.path.join(folder, path), write_meta_graph=False, write_state=False)


FIRST = {"float32", "float64", "int32", "int64", "uint8", "bool", "complex64"}
"""Those of the first format."""


def write_model(tf: Any, folder: str) -> None:
    """A SavedModel, and what it gives."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 6], name="x")
        y = tf.layers.dense(x, 2, tf.nn.softmax, kernel_initializer=_values(tf), name="layer")
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, folder, {"x": x}, {"y": y})
        _keep(folder, np.asarray(sess.run(y, {x: FED})).tolist())


def write_events(tf: Any, folder: str) -> None:
    """An event file with a scalar and a histogram."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        tf.summary.scalar("loss", x)
        tf.summary.histogram("values", x * tf.constant([1.0, 2.0]))
        merged = tf.summary.merge_all()
        writer = tf.summary.FileWriter(folder, graph)
        for step in range(3):
            writer.add_summary(sess.run(merged, {x: step * 0.5}), step)
        writer.close()
    [path] = os.listdir(folder)
    os.rename(os.path.join(folder, path), os.path.join(folder, "recorded.tfevents"))


# Reading --------------------------------------------------------------------------------------


def read(tf: Any, folder: str) -> None:
    """Reads everything; an AssertionError says what is not as it was written."""
    for job in JOBS:
        read_job(tf, os.path.join(folder, job.__name__))
    read_types(tf, os.path.join(folder, "types"))
    read_model(tf, os.path.join(folder, "model"))
    read_events(tf, os.path.join(folder, "events"))


def _expected(folder: str) -> Any:
    with open(os.path.join(folder, "expected.json")) as file:
        return json.load(file)


def read_job(tf: Any, folder: str) -> None:
    """Goes on with a job, by what its files say alone."""
    with tf.Graph().as_default(), tf.Session() as sess:
        path = os.path.join(folder, "m")
        tf.train.import_meta_graph(path + ".meta").restore(sess, path)
        assert int(sess.run(tf.train.get_global_step())) == 2
        np.testing.assert_allclose(_losses(sess), _expected(folder), 1e-5, err_msg=folder)


def read_types(tf: Any, folder: str) -> None:
    """Reads each type of both formats."""
    for path, names in (("second", [*sorted(TYPES), "empty"]), ("first", sorted(FIRST))):
        found = tf.train.load_checkpoint(os.path.join(folder, path))
        assert set(names) == set(found.get_variable_to_shape_map()), folder
        for name in names:
            try:
                values = np.asarray(found.get_tensor(name))
            except tf.errors.UnimplementedError:  # TensorFlow's reader does not know all
                assert name in ("bfloat16", "bool", "uint8", "complex64"), name
                continue
            if name == "empty":
                assert values.shape == (0, 3)
            else:
                assert values.tolist() == TYPES[name], (name, values)


def read_model(tf: Any, folder: str) -> None:
    """Loads a SavedModel and calls it."""
    with tf.Graph().as_default(), tf.Session() as sess:
        found = tf.saved_model.loader.load(sess, ["serve"], folder)
        signature = found.signature_def["serving_default"]
        given = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: FED})
        np.testing.assert_allclose(given, _expected(folder), 1e-5)


def read_events(tf: Any, folder: str) -> None:
    """Reads the summaries of an event file."""
    path = os.path.join(folder, "recorded.tfevents")
    events = [e for e in tf.train.summary_iterator(path) if e.HasField("summary")]
    assert [e.step for e in events] == [0, 1, 2]
    assert [v.simple_value for e in events for v in e.summary.value if v.tag == "loss"] == [
        0.0,
        0.5,
        1.0,
    ]
    assert [v.histo.num for e in events for v in e.summary.value if v.tag == "values"] == [2.0] * 3


def main() -> None:
    """Writes or reads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=["tensorflow", "runnel"])
    parser.add_argument("action", choices=["write", "read"])
    parser.add_argument("folder")
    options = parser.parse_args()
    action = write if options.action == "write" else read
    action(library(options.library), options.folder)


if __name__ == "__main__":
    main()
