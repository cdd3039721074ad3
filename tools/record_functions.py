"""Writes graphs and SavedModels with functions, and TensorFlow's values of them.

The graphs run under TensorFlow 1.15 (Python 3.7) and 2.21 alike, the models under 2.21 only; tests
read what they write from ``tests/recorded/files``::

    python3.7 tools/record_functions.py graphs tests/recorded/files/tensorflow-1.15/functions
    python tools/record_functions.py graphs tests/recorded/files/tensorflow-2.21/functions
    python tools/record_functions.py models tests/recorded/files/tensorflow-2.21/second_models
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

FED = [np.array([[1.0, -2.0], [0.5, 0.25]], np.float32), -np.ones([2, 2], np.float32)]


# Graphs: each makes "y" of "x" --------------------------------------------------------------------


def calls(tf: Any, x: Any) -> Any:
    """Functions that call functions."""

    @tf.function(autograph=False)
    def inner(a: Any, b: Any) -> Any:
        return tf.tanh(a) * b, a + b

    @tf.function(autograph=False)
    def outer(a: Any) -> Any:
        one, other = inner(a, a * 2.0)
        return inner(one, other)[1]

    return outer(x) * 3.0


def conditionals(tf: Any, x: Any) -> Any:
    """A conditional and a choice by number, one in the other."""

    @tf.function(autograph=False)
    def chosen(a: Any) -> Any:
        return tf.switch_case(
            tf.cast(a[0, 0], tf.int32), [lambda: a, lambda: a * a, lambda: tf.sin(a)]
        )

    @tf.function(autograph=False)
    def outer(a: Any) -> Any:
        return tf.cond(tf.reduce_sum(a) < 0.0, lambda: chosen(a), lambda: a * 3.0)

    return outer(x)


def loops(tf: Any, x: Any) -> Any:
    """A loop in a loop, and what an iteration reads of outside."""

    @tf.function(autograph=False)
    def outer(a: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            _, t = tf.while_loop(
                lambda j, t: j < i, lambda j, t: (j + 1, tf.tanh(t) * a), [tf.constant(0), s]
            )
            return i + 1, t + a

        return tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0), a])[1]

    return outer(x)


def arrays(tf: Any, x: Any) -> Any:
    """Rows one by one."""

    @tf.function(autograph=False)
    def outer(a: Any) -> Any:
        return tf.map_fn(lambda row: row * row + 1.0, a)

    return outer(x)


def called_by_type(tf: Any, x: Any) -> Any:
    """A node whose type is a function, and one that takes the gradient of a function."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="ProductAndSum")
    def product_and_sum(a: Any, b: Any) -> Any:
        return a * b, a + b

    product, total = product_and_sum(x, x + 1.0)
    y = product * total
    return y + tf.stop_gradient(tf.gradients(y, x)[0])


GRAPHS: list[Callable[[Any, Any], Any]] = [calls, conditionals, loops, arrays, called_by_type]


def elements(tf: Any) -> Any:
    """A dataset with functions that have functions."""
    numbers = tf.data.Dataset.range(6).filter(lambda i: i % 2 > 0)
    pairs = numbers.flat_map(lambda i: tf.data.Dataset.range(i).map(lambda j: (i * 10 + j, i)))
    return tf.data.make_one_shot_iterator(pairs.batch(2)).get_next()


def write_graphs(folder: str) -> None:
    """Writes each graph, with its values and those of its gradient."""
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    tf.function = tensorflow.function
    tf.enable_control_flow_v2()
    for make in GRAPHS:
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            x = tf.placeholder(tf.float32, [2, 2], name="x")
            y = tf.identity(make(tf, x), name="y")
            graph_def = graph.as_graph_def()
            dx = tf.gradients(y, x)[0]
            values = [sess.run([y, dx], {x: fed}) for fed in FED]
        path = os.path.join(folder, make.__name__)
        _write_graph(path, graph_def)
        np.savez(path + ".npz", y=[y for y, _ in values], dx=[dx for _, dx in values])
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        a, b = (tf.identity(part, name) for part, name in zip(elements(tf), "ab"))
        found = []
        try:
            while True:
                found.append(sess.run([a, b]))
        except tf.errors.OutOfRangeError:
            pass
        _write_graph(os.path.join(folder, "elements"), graph.as_graph_def())
        joined = [np.concatenate(parts) for parts in zip(*found)]
        np.savez(os.path.join(folder, "elements.npz"), a=joined[0], b=joined[1])


def _write_graph(path: str, graph_def: Any) -> None:
    with open(path + ".pb", "wb") as out:
        out.write(graph_def.SerializeToString(deterministic=True))


# Models -------------------------------------------------------------------------------------------


def models(tf: Any, folder: str) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """For each its object, its function, and what it is given."""
    vocabulary = os.path.join(folder, "vocabulary.txt")
    with open(vocabulary, "w") as out:
        out.write("a\nb\nc\n")
    rows = tf.TensorSpec([None, 2], tf.float32, name="x")

    class Dense(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.w = tf.Variable([[1.0, 2.0], [3.0, -4.0]], name="w")
            self.b = tf.Variable([0.5, -0.5])

        @tf.function(input_signature=[rows])
        def __call__(self, x: Any) -> Any:
            return {"y": tf.tanh(x @ self.w + self.b), "n": tf.shape(x)[0]}

    class Loop(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.w = tf.Variable([[1.0, 2.0], [3.0, -4.0]])
            self.calls = tf.Variable(0)

        @tf.function(input_signature=[rows])
        def __call__(self, x: Any) -> Any:
            self.calls.assign_add(1)
            for _ in tf.range(3):
                if tf.reduce_sum(x) > 0.0:
                    x = tf.tanh(x @ self.w)
                else:
                    x = x * 2.0 + self.w
                    self.calls.assign_add(10)
            return {"y": x, "calls": self.calls.read_value()}

    class Table(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            lines = tf.lookup.TextFileInitializer(
                vocabulary,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.numbers = tf.lookup.StaticHashTable(lines, -1)
            names = tf.lookup.KeyValueTensorInitializer([0, 1], ["x", "y"], tf.int64, tf.string)
            self.names = tf.lookup.StaticHashTable(names, "?")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="k")])
        def __call__(self, k: Any) -> Any:
            numbers = self.numbers.lookup(k)
            return {"i": numbers, "s": self.names.lookup(numbers)}

    class Arrays(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[rows])
        def __call__(self, x: Any) -> Any:
            array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(tf.shape(x)[0]):
                array = array.write(i, x[i] * 2.0)
            return {"m": tf.map_fn(lambda row: row * row, x), "t": array.stack()}

    found = {}
    for made, fed in (
        (Dense(), {"x": FED[0]}),
        (Loop(), {"x": FED[0]}),
        (Table(), {"k": np.array([b"c", b"?", b"a"])}),
        (Arrays(), {"x": FED[0]}),
    ):
        found[type(made).__name__.lower()] = (made, made.__call__, fed)
    return found


def networks(tf: Any) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Models of Keras, which are too large to be kept."""
    keras = importlib.import_module("tf_keras")

    layers = keras.layers
    chance = np.random.RandomState(0)
    trained = keras.Sequential(
        [
            layers.Input((4,), name="x"),
            layers.Dense(8, "relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(3, "softmax"),
        ]
    )
    trained.compile("adam", "mse")
    trained.fit(chance.rand(8, 4), chance.rand(8, 3), verbose=0)
    images = keras.Sequential(
        [
            layers.Input((8, 8, 3), name="x"),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    sequences = keras.Sequential(
        [
            layers.Input((5,), name="x"),
            layers.Embedding(10, 4, mask_zero=True),
            layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
            layers.GRU(3),
            layers.Dense(1),
        ]
    )
    return {
        "trained": (trained, None, {"x": chance.randn(5, 4).astype(np.float32)}),
        "images": (images, None, {"x": chance.randn(2, 8, 8, 3).astype(np.float32)}),
        "sequences": (
            sequences,
            None,
            {"x": chance.randint(0, 10, (3, 5)).astype(np.float32)},
        ),
    }


def write_models(folder: str, with_networks: bool = False) -> None:
    """Writes each model, with what it is fed and what TensorFlow gives for that."""
    import tensorflow as tf

    every = models(tf, folder)
    if with_networks:
        every.update(networks(tf))
    for name, (made, function, fed) in every.items():
        path = os.path.join(folder, name)
        tf.saved_model.save(made, path, signatures=function)
        served = tf.saved_model.load(path).signatures["serving_default"]
        given = served(**{key: tf.constant(value) for key, value in fed.items()})
        values = {"in_" + key: value for key, value in fed.items()}
        values.update({"out_" + key: value.numpy() for key, value in given.items()})
        kept = {k: v.astype("S") if v.dtype.kind == "O" else v for k, v in values.items()}
        np.savez(path + ".npz", **kept)
        for extra in ("fingerprint.pb", "keras_metadata.pb"):
            if os.path.exists(os.path.join(path, extra)):
                os.remove(os.path.join(path, extra))
    os.remove(os.path.join(folder, "vocabulary.txt"))  # the model has its own


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["graphs", "models", "networks"])
    parser.add_argument("folder")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    if options.what == "graphs":
        write_graphs(options.folder)
    else:
        write_models(options.folder, options.what == "networks")


if __name__ == "__main__":
    main()
