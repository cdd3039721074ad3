"""SavedModels: what either system writes, the other loads and runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from tests.saved_model.second_models import assert_serves_what_tensorflow_does

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

X = np.array([[1.0, -2.0], [0.5, 4.0]], np.float32)
BOTH_WAYS = pytest.mark.parametrize(
    "one,other", [(tf, reference), (reference, tf)], ids=["out", "in"]
)


def write(lib, folder, vocabulary, resource=False, as_text=False, strip=False):
    """A model with variables, a loop, a file and a main op; and what it gives for X."""
    with lib.Graph().as_default(), lib.Session() as sess:
        x = lib.placeholder(lib.float32, [None, 2], name="x")
        kernel = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)
        w = lib.get_variable("w", initializer=kernel, use_resource=resource)
        turns = lib.get_variable("turns", initializer=2, use_resource=resource)
        (_, y) = lib.while_loop(
            lambda i, _: i < turns, lambda i, s: (i + 1, lib.tanh(lib.matmul(s, w))), [0, x]
        )
        path = lib.constant(str(vocabulary), name="path")
        lib.add_to_collection(lib.GraphKeys.ASSET_FILEPATHS, path)
        told = lib.get_variable(
            "told", initializer="", trainable=False, collections=[lib.GraphKeys.LOCAL_VARIABLES]
        )
        main_op = lib.group(lib.assign(told, path), name="tell")
        sess.run([lib.global_variables_initializer(), lib.local_variables_initializer()])
        signature = lib.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder = lib.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            sess,
            [lib.saved_model.SERVING],
            {lib.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            assets_collection=lib.get_collection(lib.GraphKeys.ASSET_FILEPATHS),
            main_op=main_op,
            strip_default_attrs=strip,
        )
        expected = sess.run(y, {x: X})
    with lib.Graph().as_default():
        w = lib.get_variable("w", [2, 2], use_resource=resource)
        lib.identity(w * 2.0, name="doubled")
        builder.add_meta_graph(["train", "gpu"], strip_default_attrs=strip)
    builder.save(as_text)
    return expected, kernel


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("a\nb\n")
    return path


@BOTH_WAYS
@pytest.mark.parametrize(
    "options",
    [{}, {"resource": True}, {"strip": True}, {"as_text": True}],
    ids=["reference", "resource", "stripped", "text"],
)
@pytest.mark.parametrize("scope", [None, "scope"])
def test_a_model_is_loaded_by_the_other_system(tmp_path, vocabulary, one, other, options, scope):
    folder = tmp_path / "model"
    expected, kernel = write(one, folder, vocabulary, **options)
    vocabulary.unlink()  # the model has its own
    inside = f"{scope}/" if scope else ""
    with other.Graph().as_default(), other.Session() as sess:
        model = other.saved_model.load(sess, ["serve"], str(folder), import_scope=scope)
        signature = model.signature_def["serving_default"]
        assert other.saved_model.is_valid_signature(signature)
        x, y = (
            other.saved_model.get_tensor_from_tensor_info(info, import_scope=scope)
            for info in (signature.inputs["x"], signature.outputs["y"])
        )
        assert x.shape.as_list() == [None, 2]
        np.testing.assert_allclose(sess.run(y, {x: X}), expected, rtol=1e-6)
        told = sess.run(other.local_variables()[0]).decode()
        assert told == str(folder / "assets" / "vocabulary.txt")
        assert Path(told).read_text() == "a\nb\n"
        (gradient,) = other.gradients(y, x)  # through the loop
        assert np.isfinite(sess.run(gradient, {x: X})).all()
    with other.Graph().as_default(), other.Session() as sess:
        other.saved_model.loader.load(sess, {"gpu", "train"}, str(folder), import_scope=scope)
        np.testing.assert_array_equal(sess.run(f"{inside}doubled:0"), kernel * 2)


EAGER = """
import sys
import numpy, tensorflow
served = tensorflow.saved_model.load(sys.argv[1]).signatures["serving_default"]
print(numpy.asarray(served(x=tensorflow.constant(eval(sys.argv[2])))["y"]).tolist())

"""


def test_the_second_tensorflow_serves_a_model(tmp_path):
    """In a process of its own, for TensorFlow's eager execution is switched off in this one."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.get_variable("w", initializer=X)
        y = tf.cond(x[0, 0] > 0.0, lambda: tf.matmul(x, w), lambda: x)
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, tmp_path / "ours", {"x": x}, {"y": y})
        expected = sess.run(y, {x: X})
    given = [str(tmp_path / "ours"), str(X.tolist())]
    command = [sys.executable, "-c", EAGER, *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(ast.literal_eval(done.stdout.splitlines()[-1]), expected)


def test_models_of_the_second_tensorflow_serve_what_it_serves(tmp_path):
    """Written in a process of its own; among them are models of Keras."""
    program = Path(__file__).parents[2] / "tools" / "record_functions.py"
    command = [sys.executable, str(program), "networks", str(tmp_path / "models")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    names = sorted(path.stem for path in (tmp_path / "models").glob("*.npz"))
    assert {"dense", "loop", "table", "arrays", "trained", "images", "sequences"} == set(names)
    for name in names:
        for level in (tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1):
            assert_serves_what_tensorflow_does(tmp_path / "models" / name, None, level)


@BOTH_WAYS
def test_a_model_without_variables(tmp_path, one, other):
    with one.Graph().as_default(), one.Session() as sess:
        x = one.placeholder(one.float32, [], name="x")
        one.saved_model.simple_save(sess, str(tmp_path / "m"), {"x": x}, {"y": x * 3.0})
    assert other.saved_model.contains_saved_model(str(tmp_path / "m"))
    with other.Graph().as_default(), other.Session() as sess:
        model = other.saved_model.load(sess, ["serve"], str(tmp_path / "m"))
        y = model.signature_def["serving_default"].outputs["y"].name
        assert sess.run(y, {"x:0": 2.0}) == 6.0


def test_tensorflow_loads_what_an_estimator_exports(tmp_path):
    from tests.estimator.linear_model import X as rows
    from tests.estimator.linear_model import all_rows, descended, estimator

    made = estimator(tmp_path)
    made.train(all_rows(None), steps=10)
    with tf.Graph().as_default():
        receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(rows)})
        folder = made.export_saved_model(tmp_path / "exports", receive)
    tf.summary.FileWriterCache.clear()
    w, b = descended(10)
    with reference.Graph().as_default(), reference.Session() as sess:
        model = reference.saved_model.load(sess, ["serve"], folder.decode())
        signature = model.signature_def["serving_default"]
        found = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: rows[:5]})
        np.testing.assert_allclose(found, rows[:5] @ w + b, rtol=1e-4, atol=1e-5)


def test_signatures_are_tensorflows():
    """Every kind, built from the same tensors, as messages; valid where TensorFlow says so."""

    def signatures(lib):
        with lib.Graph().as_default():
            examples = lib.placeholder(lib.string, [None], name="e")
            classes = lib.placeholder(lib.string, [None, 3], name="c")
            scores = lib.placeholder(lib.float32, None, name="s")
            utils = lib.saved_model.signature_def_utils
            found = {
                "predict": utils.predict_signature_def({"e": examples}, {"s": scores}),
                "regress": utils.regression_signature_def(examples, scores),
                "classes": utils.classification_signature_def(examples, classes, None),
                "scores": utils.classification_signature_def(examples, None, scores),
                "both": utils.classification_signature_def(examples, classes, scores),
                "wrong": utils.build_signature_def(
                    {"inputs": lib.saved_model.build_tensor_info(scores)},
                    {"outputs": lib.saved_model.build_tensor_info(scores)},
                    lib.saved_model.REGRESS_METHOD_NAME,
                ),
                "empty": utils.build_signature_def(),
            }
            for bad in (
                lambda: utils.regression_signature_def(scores, scores),
                lambda: utils.regression_signature_def(examples, None),
                lambda: utils.classification_signature_def(examples, None, None),
                lambda: utils.classification_signature_def(examples, scores, None),
                lambda: utils.predict_signature_def({}, {"s": scores}),
            ):
                with pytest.raises(ValueError):
                    bad()
        return {
            name: (made.SerializeToString(deterministic=True), utils.is_valid_signature(made))
            for name, made in found.items()
        }

    assert signatures(tf) == signatures(reference)


def test_the_constants_are_tensorflows():
    for name in dir(tf.saved_model):
        if name.isupper():
            assert getattr(tf.saved_model, name) == getattr(reference.saved_model, name)
