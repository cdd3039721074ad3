"""The tools of ``tensorflow.python.tools``: freezing, stripping and folding graphs."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

import runnel as tf
from runnel.python.tools import (
    freeze_graph,
    inspect_checkpoint,
    optimize_for_inference_lib,
    saved_model_utils,
    strip_unused_lib,
)

IMAGES = np.random.default_rng(3).normal(size=[2, 6, 6, 3]).astype(np.float32)


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def trained(request, tmp_path):
    """A folder with the graph, the checkpoint and the SavedModel of a small network."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.get_variable_scope().set_use_resource(request.param)
        images = tf.placeholder(tf.float32, [None, 6, 6, 3], name="images")
        with tf.device("/cpu:0"):
            hidden = tf.layers.conv2d(images, 4, 3, use_bias=False, name="conv")
        hidden = tf.layers.batch_normalization(hidden, name="norm", fused=True)
        tf.identity(tf.reduce_mean(tf.nn.relu(hidden), [1, 2]), name="output")
        sess.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            values = np.random.default_rng(len(variable.name)).uniform(0.5, 2, variable.shape)
            variable.load(values, sess)
        saver = tf.train.Saver()
        saver.save(sess, str(tmp_path / "model"))
        tf.train.write_graph(graph, str(tmp_path), "graph.pb", as_text=False)
        tf.train.write_graph(graph, str(tmp_path), "graph.pbtxt")
        (tmp_path / "saver.pb").write_bytes(saver.as_saver_def().SerializeToString())
        tf.saved_model.simple_save(
            sess,
            str(tmp_path / "saved"),
            {"x": images},
            {"y": graph.get_tensor_by_name("output:0")},
        )
        expected = sess.run("output:0", {images: IMAGES})
    return tmp_path, expected


def run(graph_def, inputs="images:0"):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return sess.run("output:0", {inputs: IMAGES})


def freeze(graph="", saver="", binary=True, checkpoint=None, output="", **how):
    return freeze_graph.freeze_graph(
        graph, saver, binary, checkpoint, "output", "save/restore_all", "save/Const:0", output,
        True, "", **how,
    )  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        {"graph": "graph.pb"},
        {"graph": "graph.pbtxt", "binary": False},
        {"graph": "graph.pb", "saver": "saver.pb"},
        {"input_meta_graph": "model.meta"},
    ],
    ids=["graph", "text", "saver", "meta graph"],
)
def test_a_frozen_graph_computes_what_its_session_did(trained, given):
    folder, expected = trained
    files = {key: str(folder / name) if key != "binary" else name for key, name in given.items()}
    output = str(folder / "frozen.pb")
    frozen = freeze(**files, checkpoint=str(folder / "model"), output=output)
    assert not {"VariableV2", "VarHandleOp"} & {node.op for node in frozen.node}
    assert not any(node.device for node in frozen.node)
    np.testing.assert_allclose(run(frozen), expected, rtol=1e-5)
    written = type(frozen)()
    written.ParseFromString((folder / "frozen.pb").read_bytes())
    assert written == frozen


def test_a_saved_model_is_frozen(trained):
    folder, expected = trained
    frozen = freeze(input_saved_model_dir=str(folder / "saved"))
    np.testing.assert_allclose(run(frozen), expected, rtol=1e-5)
    tags = saved_model_utils.get_saved_model_tag_sets(folder / "saved")
    assert tags == [["serve"]]


def test_what_is_missing_is_told(trained):
    folder, _ = trained
    with pytest.raises(ValueError, match="checkpoint .*nowhere.* doesn't exist"):
        freeze(str(folder / "graph.pb"), checkpoint=str(folder / "nowhere"))
    with pytest.raises(ValueError, match="Input graph file .*none.pb.* does not exist"):
        freeze(str(folder / "none.pb"), checkpoint=str(folder / "model"))
    with pytest.raises(ValueError, match="input_binary"):
        freeze(str(folder / "graph.pbtxt"), checkpoint=str(folder / "model"))


def test_a_graph_for_inference_has_its_batch_normalisation_in_the_convolution(trained):
    folder, expected = trained
    frozen = freeze(str(folder / "graph.pb"), checkpoint=str(folder / "model"))
    small = optimize_for_inference_lib.optimize_for_inference(
        frozen, ["images"], ["output"], tf.float32.as_datatype_enum
    )
    kinds = [node.op for node in small.node]
    assert "BiasAdd" in kinds and not any(kind.startswith("FusedBatchNorm") for kind in kinds)
    np.testing.assert_allclose(run(small), expected, rtol=1e-4, atol=1e-5)


def test_a_convolution_that_others_read_keeps_its_weights():
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [None, 6, 6, 3], name="images")
        conv = tf.nn.conv2d(images, tf.ones([3, 3, 3, 2]), 1, "SAME")
        one = tf.constant([1.0, 2.0])
        normed = tf.nn.fused_batch_norm(conv, one, one, one, one, is_training=False)[0]
        tf.add(conv, normed, name="output")
    before = graph.as_graph_def()
    folded = optimize_for_inference_lib.fold_batch_norms(before)
    assert folded == before


def test_stripping_makes_placeholders_of_inputs(trained, tmp_path):
    folder, _ = trained
    frozen = freeze(str(folder / "graph.pb"), checkpoint=str(folder / "model"))
    inside = next(node.name for node in frozen.node if node.op == "Relu")
    cut = strip_unused_lib.strip_unused(frozen, [inside], ["output"], [tf.float32])
    assert {node.op for node in cut.node} == {"Placeholder", "Const", "Mean", "Identity"}
    (tmp_path / "in.pb").write_bytes(frozen.SerializeToString())
    out = tmp_path / "out.pbtxt"
    strip_unused_lib.strip_unused_from_files(
        str(tmp_path / "in.pb"), True, str(out), False, inside, "output", tf.float32
    )
    assert text_format.Parse(out.read_text(), type(frozen)()) == cut
    with pytest.raises(ValueError, match="nobody"):
        strip_unused_lib.strip_unused(frozen, ["nobody"], ["output"], tf.float32)


def test_a_checkpoint_is_printed(tmp_path, capsys):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.Variable([1.0, 2.0], name="a")
        tf.Variable([[3]], name="b/Adam")
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    show = inspect_checkpoint.print_tensors_in_checkpoint_file
    show(path, tensor_name="", all_tensors=True)
    # What TensorFlow 1.15 prints.
    assert capsys.readouterr().out == (
        "tensor_name:  a\n[1. 2.]\ntensor_name:  b/Adam\n[[3]]\n# Total number of params: 3\n"
    )
    show(path, tensor_name="", all_tensors=False, count_exclude_pattern="Adam")
    assert capsys.readouterr().out == (
        "a (DT_FLOAT) [2]\nb/Adam (DT_INT32) [1,1]\n\n# Total number of params: 2\n"
    )
    show(path, tensor_name="q", all_tensors=False)
    assert "has no tensor 'q'" in capsys.readouterr().out
