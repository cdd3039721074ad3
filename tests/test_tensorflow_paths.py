"""What programs import beside ``tf``: inner modules, ``compat``, the tutorials' data."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import runnel as tf
from runnel.inner_modules import finder

NAMES = {
    "client.device_lib": "list_local_devices",
    "client.timeline": "Timeline",
    "framework.dtypes": "float32",
    "framework.errors": "OutOfRangeError",
    "framework.graph_util": "convert_variables_to_constants",
    "framework.ops": "RegisterGradient",
    "framework.tensor_shape": "TensorShape",
    "framework.tensor_util": "constant_value",
    "layers.core": "Dense",
    "layers.utils": "smart_cond",
    "ops.array_ops": "expand_dims",
    "ops.control_flow_ops": "while_loop",
    "ops.embedding_ops": "embedding_lookup",
    "ops.init_ops": "constant_initializer",
    "ops.lookup_ops": "index_table_from_file",
    "ops.math_ops": "matmul",
    "ops.nn_ops": "conv2d",
    "ops.resource_variable_ops": "ResourceVariable",
    "ops.rnn": "dynamic_rnn",
    "ops.rnn_cell_impl": "LSTMStateTuple",
    "ops.variable_scope": "get_variable",
    "platform.flags": "DEFINE_string",
    "platform.gfile": "Exists",
    "platform.tf_logging": "info",
    "saved_model.tag_constants": "SERVING",
    "training.moving_averages": "assign_moving_average",
    "training.saver": "Saver",
    "util.compat": "as_bytes",
    "util.nest": "is_sequence",
}


@pytest.mark.parametrize(("module", "name"), NAMES.items())
def test_an_inner_module_of_tensorflow_has_its_names(module, name):
    assert getattr(importlib.import_module(f"runnel.python.{module}"), name) is not None


def test_inner_modules_are_imported_in_every_way():
    from runnel.python.framework import ops
    from runnel.python.ops import array_ops, rnn_cell_impl
    from runnel.python.ops.rnn_cell_impl import LSTMCell

    assert ops.get_default_graph is tf.get_default_graph
    assert array_ops.shape is tf.shape
    assert rnn_cell_impl.LSTMCell is LSTMCell is tf.nn.rnn_cell.LSTMCell
    assert tf.python.ops.array_ops is array_ops


def test_programs_may_have_runnel_under_tensorflows_name():
    """In a process of its own, whose modules have that name from then on."""
    code = (
        "import sys, runnel; sys.modules['tensorflow'] = runnel\n"
        "import tensorflow as tf, tensorflow.contrib.slim as slim\n"
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.examples.tutorials.mnist import input_data\n"
        "assert ops.Tensor is tf.Tensor is runnel.Tensor\n"
        "assert slim.conv2d is tf.contrib.layers.conv2d\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_name_that_is_not_there_says_where_the_names_are():
    from runnel.python.ops import array_ops

    with pytest.raises(AttributeError, match=r"python\.ops\.array_ops.*tensorflow-names"):
        array_ops.nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("runnel.python.ops.nothing")


def test_every_inner_module_has_a_namespace():
    for name in finder.MODULES:
        assert importlib.import_module(f"runnel.{name}").__all__, name


CONTRIBUTED = {
    "contrib.crf.python.ops.crf": "crf_log_likelihood",
    "contrib.framework.python.ops": "add_arg_scope",
    "contrib.framework.python.ops.variables": "get_or_create_global_step",
    "contrib.layers.python.layers": "batch_norm",
    "contrib.layers.python.layers.feature_column": "sparse_column_with_keys",
    "contrib.layers.python.layers.feature_column_ops": "input_from_feature_columns",
    "contrib.layers.python.layers.initializers": "xavier_initializer",
    "contrib.layers.python.layers.layers": "fully_connected",
    "contrib.layers.python.layers.regularizers": "apply_regularization",
    "contrib.layers.python.layers.utils": "n_positive_integers",
    "contrib.layers.python.ops.sparse_feature_cross_op": "sparse_feature_cross",
    "contrib.learn.python.learn.datasets.mnist": "read_data_sets",
    "contrib.legacy_seq2seq.python.ops.seq2seq": "sequence_loss_by_example",
    "contrib.rnn.core_rnn_cell": "BasicLSTMCell",
    "contrib.rnn.python.ops.core_rnn_cell_impl": "GRUCell",
    "contrib.rnn.python.ops.rnn": "static_rnn",
    "contrib.seq2seq.python.ops.attention_wrapper": "AttentionWrapper",
    "contrib.seq2seq.python.ops.helper": "TrainingHelper",
    "contrib.tpu.python.tpu.tpu_estimator": "TPUEstimator",
    "contrib.training.python.training.hparam": "HParams",
    "core.example.example_pb2": "SequenceExample",
    "core.framework.graph_pb2": "GraphDef",
    "core.framework.summary_pb2": "HistogramProto",
    "core.protobuf.config_pb2": "ConfigProto",
    "core.util.event_pb2": "Event",
}


@pytest.mark.parametrize(("module", "name"), CONTRIBUTED.items())
def test_a_module_inside_contrib_or_core_has_its_names(module, name):
    assert getattr(importlib.import_module(f"runnel.{module}"), name) is not None


def test_an_inner_module_gives_all_its_names():
    names: dict[str, object] = {}
    exec("from runnel.contrib.rnn.python.ops.rnn_cell import *", names)
    assert names["LSTMCell"] is tf.nn.rnn_cell.LSTMCell


def test_a_cell_of_a_programs_own_is_a_linear_map():
    linear = importlib.import_module("runnel.contrib.rnn.python.ops.core_rnn_cell")._linear
    x, h = np.float32([[1, 2]]), np.float32([[3]])
    with tf.variable_scope("cell"):
        y = linear([x, h], 4, True, tf.constant_initializer(0.5), tf.ones_initializer())
    assert [v.name for v in tf.trainable_variables()] == ["cell/kernel:0", "cell/bias:0"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(y), np.full((1, 4), 6.5))
    with pytest.raises(ValueError, match="must be specified"):
        linear([], 4, True)


def test_functions_are_inspected_as_python_2_did():
    inspection = importlib.import_module("runnel.python.util.tf_inspect")

    def model(features, labels, mode=None, *more, params=3, **rest): ...

    spec = inspection.getargspec(model)
    assert spec == (["features", "labels", "mode"], "more", "rest", (None,))
    assert inspection.isfunction(model)
    fn_args = importlib.import_module("runnel.python.util.function_utils").fn_args
    assert fn_args(model) == ("features", "labels", "mode", "params")
    assert fn_args("".encode) == ("encoding", "errors")


def test_a_library_shows_the_names_that_it_lists(monkeypatch):
    library = ModuleType("library", "A library.\n\n@@listed\n")
    library.__dict__.update(listed=1, allowed=2, hidden=3, _own=4)
    monkeypatch.setitem(sys.modules, "library", library)
    all_util = importlib.import_module("runnel.python.util.all_util")
    assert all_util.make_all("library") == ["listed"]
    all_util.remove_undocumented("library", ["allowed"])
    assert {"listed", "allowed", "_own"} <= set(vars(library)) and not hasattr(library, "hidden")


def test_compat():
    v1 = importlib.import_module("runnel.compat.v1")
    assert v1.Session is tf.Session
    assert tf.compat.v1.nn.relu is tf.nn.relu
    v1.disable_v2_behavior()
    assert tf.compat.as_bytes("é") == "é".encode()
    assert tf.compat.as_text(b"a") == tf.compat.as_str("a") == "a"
    assert tf.compat.as_str_any(3) == "3"
    with pytest.raises(TypeError, match="binary or unicode"):
        tf.compat.as_text(3)
    with pytest.raises(AttributeError, match="use tf.compat.v1"):
        tf.compat.v2  # noqa: B018


def test_the_version_is_that_of_the_tensorflow_that_programs_expect():
    assert re.fullmatch(r"1\.15\.\d+", tf.__version__)
    assert tf.VERSION == tf.version.VERSION == tf.__version__


def test_the_tutorials_data_are_there_without_a_download(tmp_path, caplog):
    from runnel.examples.tutorials.mnist import input_data

    data = input_data.read_data_sets(str(tmp_path), one_hot=True)
    images, labels = data.train.next_batch(10)
    assert images.shape == (10, 784) and labels.shape == (10, 10)
    assert "digits that ship with runnel" in caplog.text
    assert input_data.read_data_sets(str(tmp_path), reshape=False).test.images.shape[1:] == (
        28,
        28,
        1,
    )


def test_a_template_makes_its_variables_once():
    def scaled(x, by):
        return x * by * tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))

    layer = tf.make_template("layer", scaled, by=3.0)
    other = tf.make_template("layer", scaled, by=1.0)
    outputs = [layer(1.0), layer(2.0), other(1.0)]
    assert [v.op.name for v in tf.global_variables()] == ["layer/w", "layer_1/w"]
    assert layer.variables == layer.trainable_variables == tf.global_variables()[:1]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(outputs), [6, 12, 2])
