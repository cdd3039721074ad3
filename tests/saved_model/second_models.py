"""Loading a SavedModel of TensorFlow 2 beside what TensorFlow has given for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import runnel as tf


def assert_serves_what_tensorflow_does(folder: Path, scope: str | None, level: int) -> None:
    """Its signature gives what is recorded in the file beside ``folder``, at each first call."""
    values = np.load(f"{folder}.npz")
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        model = tf.saved_model.load(sess, ["serve"], str(folder), import_scope=scope)
        signature = model.signature_def["serving_default"]
        prefix = f"{scope}/" if scope else ""
        feeds, fetches = {}, {}
        for key in values:
            kind, _, name = key.partition("_")
            infos = signature.inputs if kind == "in" else signature.outputs
            if kind == "in":
                feeds[prefix + infos[name].name] = values[key]
            else:
                fetches[name] = prefix + infos[name].name
        given = sess.run(fetches, feeds)
    assert fetches
    for name, value in given.items():
        expected = values[f"out_{name}"]
        if expected.dtype.kind == "S":
            assert value.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
