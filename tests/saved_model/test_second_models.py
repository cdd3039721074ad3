"""SavedModels of TensorFlow 2, whose signatures are functions (``tools/record_functions.py``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from tests.saved_model.second_models import assert_serves_what_tensorflow_does

MODELS = Path(__file__).parents[1] / "recorded" / "files" / "tensorflow-2.21" / "second_models"
NAMES = sorted(path.stem for path in MODELS.glob("*.npz"))


@pytest.mark.parametrize("level", [tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1])
@pytest.mark.parametrize("scope", [None, "model"])
@pytest.mark.parametrize("name", NAMES)
def test_signatures_give_what_tensorflow_gives(name, scope, level):
    assert_serves_what_tensorflow_does(MODELS / name, scope, level)


def test_the_predictor_serves_them():
    values = np.load(MODELS / "dense.npz")
    predict = tf.contrib.predictor.from_saved_model(str(MODELS / "dense"))
    given = predict({"x": values["in_x"]})
    np.testing.assert_allclose(given["y"], values["out_y"], rtol=1e-5)
    assert given["n"] == values["out_n"]


def test_a_gradient_goes_through_a_signature():
    values = np.load(MODELS / "dense.npz")
    with tf.Graph().as_default(), tf.Session() as sess:
        signature = tf.saved_model.load(sess, ["serve"], MODELS / "dense").signature_def
        served = signature["serving_default"]
        x, y = (
            sess.graph.get_tensor_by_name(info.name)
            for info in (served.inputs["x"], served.outputs["y"])
        )
        dx, fed = tf.gradients(y, x)[0], values["in_x"]
        w = np.array([[1.0, 2.0], [3.0, -4.0]])
        expected = (1 - values["out_y"] ** 2) @ w.T
        np.testing.assert_allclose(sess.run(dx, {x: fed}), expected, rtol=1e-3, atol=1e-5)
