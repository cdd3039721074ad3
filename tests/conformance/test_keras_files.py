"""HDF5 files of ``tf.keras`` models: whole and by name; TensorFlow reads them too."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import runnel as tf

h5py = pytest.importorskip("h5py")
layers = tf.keras.layers
X = np.random.RandomState(0).uniform(-1, 1, (12, 4)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


def trained():
    x = tf.keras.Input((4,), name="x")
    y = layers.BatchNormalization(name="norm")(layers.Dense(3, "tanh", name="hidden")(x))
    model = tf.keras.Model(x, layers.Dense(1, name="out")(y))
    model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(X, Y, epochs=3, verbose=0, shuffle=False)
    return model


def test_a_model_goes_on_where_it_was(tmp_path):
    path = str(tmp_path / "model.h5")
    with tf.Graph().as_default():
        model = trained()
        model.save(path)
        expected = model.predict(X)
        after = model.fit(X, Y, epochs=2, verbose=0, shuffle=False).history
    with tf.Graph().as_default():
        again = tf.keras.models.load_model(path)
        np.testing.assert_array_equal(again.predict(X), expected)
        found = again.fit(X, Y, epochs=2, verbose=0, shuffle=False).history
    assert found.keys() == after.keys()
    for name in found:
        np.testing.assert_allclose(found[name], after[name], rtol=1e-6)


def test_variables_by_order_and_by_name(tmp_path):
    path = str(tmp_path / "weights.h5")
    with tf.Graph().as_default():
        model = trained()
        model.save_weights(path)
        expected = model.get_weights()
    with tf.Graph().as_default():
        other = trained()
        other.load_weights(path)
        for found, wanted in zip(other.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    with tf.Graph().as_default():
        part = tf.keras.Sequential(
            [layers.Dense(3, name="hidden", input_shape=(4,)), layers.Dense(2, name="new")]
        )
        before = part.layers[1].get_weights()
        part.load_weights(path, by_name=True)
        np.testing.assert_array_equal(part.layers[0].get_weights()[0], expected[0])
        np.testing.assert_array_equal(part.layers[1].get_weights()[0], before[0])
        with pytest.raises(ValueError, match="3 layers into a model with 2"):
            part.load_weights(path)


THEIRS = """
import sys
import numpy, tf_keras
model = tf_keras.models.load_model(sys.argv[1], compile=False)
numpy.save(sys.argv[2], model.predict(numpy.load(sys.argv[3]), verbose=0))
"""


def test_tensorflow_reads_the_file(tmp_path):
    """In a process of its own: other tests take TensorFlow 2's behaviour away from this one."""
    pytest.importorskip("tf_keras")
    path, given, found = (str(tmp_path / name) for name in ("model.h5", "x.npy", "y.npy"))
    with tf.Graph().as_default():
        model = trained()
        model.save(path)
        expected = model.predict(X)
    np.save(given, X)
    subprocess.run([sys.executable, "-c", THEIRS, path, found, given], check=True, timeout=110)
    np.testing.assert_allclose(np.load(found), expected, rtol=1e-5, atol=1e-6)
