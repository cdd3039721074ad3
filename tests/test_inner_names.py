"""Names inside TensorFlow that libraries use: what they decorate, describe and ask with."""

from __future__ import annotations

import importlib
import logging

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import Summary

import runnel as tf


def inner(name):
    return importlib.import_module(f"runnel.python.{name}")


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, logger="runnel")
    return lambda: [record.getMessage() for record in caplog.records]


def test_what_is_deprecated_says_so_once(said):
    deprecation = inner("util.deprecation")

    @deprecation.deprecated("2030-01-01", "Use fit.")
    def learn(x):
        """Learns."""
        return x + 1

    assert [learn(1), learn(2)] == [2, 3] and learn.__doc__ == "Learns."
    (message,) = said()
    assert "learn" in message and "after 2030-01-01" in message and "Use fit." in message


def test_arguments_that_are_deprecated(said):
    deprecation = inner("util.deprecation")

    @deprecation.deprecated_args(None, "Use axis.", "dim", ("keep", None))
    def total(x, dim=None, keep=None, axis=None):
        axis = deprecation.deprecated_argument_lookup("axis", axis, "dim", dim)
        return np.sum(x, axis)

    assert total([[1, 2]], axis=0).tolist() == [1, 2] and total([[1, 2]], keep=None) == 3
    assert said() == []
    assert total([[1, 2]], dim=0).tolist() == [1, 2]
    assert len(said()) == 1 and "dim=0" in said()[0]
    total([1], keep=True)
    assert "keep=True" in said()[1]
    with pytest.raises(ValueError, match=r"axis.*dim"):
        total([1], dim=0, axis=0)
    with pytest.raises(TypeError):
        total()


def test_values_and_names_that_are_deprecated(said):
    deprecation = inner("util.deprecation")

    @deprecation.deprecated_arg_values(None, "Always scale.", scale=False)
    def image(scale=True):
        return scale

    class Model:
        def __init__(self, size):
            self.size = size

    old_model = deprecation.deprecated_alias("lib.OldModel", "lib.Model", Model)
    assert image() and not said()
    assert not image(scale=False) and "scale=False" in said()[0]
    assert isinstance(old_model(3), Model) and old_model(4).size == 4
    assert len(said()) == 2 and "lib.OldModel" in said()[1] and "lib.Model" in said()[1]
    with deprecation.silence():
        deprecation.deprecated(None, "No.")(len)("")
    assert len(said()) == 2


def test_arguments_that_must_be_named():
    called = inner("util.keyword_args").keyword_args_only(lambda x: x)
    assert called(x=1) == 1
    with pytest.raises(ValueError, match="keyword"):
        called(1)


def test_files_by_their_inner_names(tmp_path):
    file_io = inner("lib.io.file_io")
    folder = tmp_path / "a" / "b"
    file_io.recursive_create_dir(str(folder))
    name = str(folder / "x.txt")
    file_io.atomic_write_string_to_file(name, "one\ntwo")
    assert file_io.file_exists(name) and file_io.is_directory(str(folder))
    assert file_io.read_file_to_string(name) == "one\ntwo"
    assert file_io.read_file_to_string(name, binary_mode=True) == b"one\ntwo"
    with file_io.FileIO(name, "r") as file:
        assert [line.strip() for line in file] == ["one", "two"]
    assert file_io.list_directory(str(folder)) == ["x.txt"]
    assert file_io.get_matching_files([str(folder / "*.txt"), str(folder / "*.no")]) == [name]
    assert file_io.stat(name).length == 7
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(name, b"new", overwrite=False)
    assert file_io.list_directory(str(folder)) == ["x.txt"]
    file_io.delete_file(name)
    file_io.delete_recursively(str(tmp_path / "a"))
    assert not file_io.file_exists(str(folder))


def test_a_collection_of_a_programs_own_is_part_of_a_metagraph():
    ops = inner("framework.ops")

    class Note:
        def __init__(self, text):
            self.text = text

    def describe(note, export_scope=None):
        return Summary.Value(tag=note.text)

    ops.register_proto_function(
        "notes", Summary.Value, describe, lambda message, import_scope=None: Note(message.tag)
    )
    with pytest.raises(KeyError, match="notes"):
        ops.register_proto_function("notes", Summary.Value)
    assert ops.get_to_proto_function("notes") is describe
    with tf.Graph().as_default():
        tf.add_to_collection("notes", Note("hello"))
        saved = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(saved)
        assert [note.text for note in tf.get_collection("notes")] == ["hello"]


def test_libraries_ask_for_the_kind_of_a_value_and_of_execution():
    ops, context = inner("framework.ops"), inner("eager.context")
    x, v = tf.constant(1.0), tf.Variable(1.0)
    assert ops.is_dense_tensor_like(x) and ops.is_dense_tensor_like(v)
    assert not ops.is_dense_tensor_like(1.0) and not isinstance(x, ops.EagerTensor)
    assert isinstance(x, ops._TensorLike) and isinstance(
        tf.SparseTensor([[0]], [1], [1]), ops._TensorLike
    )
    assert not isinstance(v, ops._TensorLike)
    assert context.in_graph_mode() and not context.in_eager_mode()
    with context.graph_mode():
        assert not context.executing_eagerly()
    with pytest.raises(NotImplementedError, match="eager"):
        context.eager_mode()


def test_a_class_stands_for_a_tensor():
    class Named:
        def __init__(self, value):
            self.value = value

    def forwarded(operator):
        return lambda self, *args: getattr(tf.Tensor, operator)(self.value, *args)

    for operator in tf.Tensor.OVERLOADABLE_OPERATORS:
        setattr(Named, operator, forwarded(operator))
    x = Named(tf.constant([3.0, 4.0]))
    with tf.Session() as sess:
        found = sess.run([x + 1.0, 2.0 - x, -x, abs(x), x[1], x > 3.5, x**2.0, x / 2.0])
    expected = [[4, 5], [-1, -2], [-3, -4], [3, 4], 4, [False, True], [9, 16], [1.5, 2]]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_a_library_asks_which_device_an_operation_would_have():
    class Stand:
        type = "MatMul"
        device = None

        def _set_device(self, device):
            self.device = device

    graph = tf.get_default_graph()

    def asked():
        stand = Stand()
        graph._apply_device_functions(stand)
        return stand.device and stand.device.to_string()

    assert asked() is None
    with tf.device("/job:ps"), tf.device("/cpu:0"):
        assert asked() == "/job:ps/device:CPU:0"
    with tf.device(lambda op: "/gpu:1" if op.type == "MatMul" else "/cpu:0"):
        assert asked() == "/device:GPU:1"


def test_a_scope_that_opens_no_scope_of_names():
    scopes = inner("ops.variable_scope")
    with tf.name_scope("outer"), scopes._pure_variable_scope("layer", reuse=tf.AUTO_REUSE):
        v = tf.get_variable("v", [])
        x = tf.constant(1.0, name="x")
    assert (v.op.name, x.op.name) == ("layer/v", "outer/x")


def test_shapes_and_states_for_cells_of_a_programs_own():
    impl = inner("ops.rnn_cell_impl")
    cell = tf.nn.rnn_cell.LSTMCell(3)
    assert impl._like_rnncell(cell) and not impl._like_rnncell(3)
    state = impl._zero_state_tensors(cell.state_size, 2, tf.float32)
    assert [part.shape.as_list() for part in state] == [[2, 3], [2, 3]]
    assert impl._concat([2, None], tf.TensorShape([4]), static=True) == [2, None, 4]
    with tf.Session() as sess:
        assert sess.run(impl._concat(tf.constant(2), [4])).tolist() == [2, 4]


def test_inner_modules_have_those_that_they_import():
    from runnel.python.ops.rnn import array_ops, rnn_cell_impl

    assert rnn_cell_impl.LSTMCell is tf.nn.rnn_cell.LSTMCell
    assert array_ops.reshape is tf.reshape


def test_steps_with_hooks_in_a_session_that_is_there():
    hooked = inner("training.monitored_session")._HookedSession
    x = tf.placeholder(tf.float32, [])
    seen = []

    class Watch(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(x * 10.0)

        def after_run(self, run_context, run_values):
            seen.append(float(run_values.results))
            if run_values.results > 15:
                run_context.request_stop()

    with tf.Session() as sess:
        watched = hooked(sess, [Watch()])
        assert watched.run(x + 1.0, {x: 1.0}) == 2.0 and not watched.should_stop()
        assert watched.run([x], feed_dict={x: 2.0}) == [2.0] and watched.should_stop()
        assert watched.graph is sess.graph
    assert seen == [10.0, 20.0]


def test_rows_are_replaced():
    inplace_ops = inner("ops.inplace_ops")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.Session() as sess:
        row = inplace_ops.alias_inplace_update(x, 1, [7.0, 8.0])
        assert sess.run(row).tolist() == [[1, 2], [7, 8], [5, 6]]
        rows = inplace_ops.alias_inplace_add(x, [2, 0], [[1.0, 1.0], [2.0, 2.0]])
        assert sess.run(rows).tolist() == [[3, 4], [3, 4], [6, 7]]
        whole = inplace_ops.inplace_sub(x, None, x)
        assert not sess.run(whole).any()


def test_modules_of_operations_have_the_functions_that_are_generated():
    assert callable(inner("ops.resource_variable_ops").resource_scatter_add)
    assert callable(inner("ops.io_ops").restore_v2)
    assert callable(inner("training.training_ops").apply_adam)


def test_modules_of_data_and_estimators_under_their_other_names():
    assert inner("data.ops.dataset_ops").DatasetV2 is tf.data.Dataset
    assert inner("data.ops.iterator_ops").IteratorV2 is tf.data.Iterator
    assert inner("estimator.model_fn").EstimatorSpec is tf.estimator.EstimatorSpec
    assert inner("estimator.export.export_output").PredictOutput is (
        tf.estimator.export.PredictOutput
    )
    assert (
        inner("training.checkpoint_state_pb2")
        .CheckpointState(model_checkpoint_path="x")
        .IsInitialized()
    )
    decoder = importlib.import_module("runnel.contrib.slim.python.slim.data.data_decoder")
    assert issubclass(tf.contrib.slim.tfexample_decoder.TFExampleDecoder, decoder.DataDecoder)


def test_a_package_shows_a_function_with_the_name_of_its_module():
    """``from tensorflow.contrib.framework.python.ops import arg_scope`` is the function."""
    where = "runnel.contrib.framework.python.ops"
    module = importlib.import_module(f"{where}.arg_scope")
    package = importlib.import_module(where)
    assert package.arg_scope is module.arg_scope is tf.contrib.framework.arg_scope
    assert package.add_arg_scope is tf.contrib.framework.add_arg_scope
    assert package.variables.get_variables is tf.contrib.framework.get_variables
    layers = importlib.import_module("runnel.contrib.layers.python.layers")
    assert layers.layers.conv2d is layers.conv2d


def test_programs_call_the_gradients_of_operations_by_name():
    math_grad, nn_grad = inner("ops.math_grad"), inner("ops.nn_grad")
    ops = inner("framework.ops")
    array_grad = inner("ops.array_grad")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.constant([-1.0, 2.0])
        up = tf.constant([3.0, 5.0])
        active, bent = tf.nn.relu(x), tf.tanh(x)
        with graph.gradient_override_map({"Relu": "Identity"}):
            passed = tf.nn.relu(x)
        assert ops.get_gradient_function(active.op) is nn_grad._ReluGrad
        assert ops.get_gradient_function(passed.op) is array_grad._IdGrad
        assert ops._gradient_registry.lookup("Tanh") is math_grad._TanhGrad
        assert ops.get_gradient_function(x.op) is None
        found = sess.run([nn_grad._ReluGrad(active.op, up), math_grad._TanhGrad(bent.op, up)])
    np.testing.assert_allclose(found[0], [0, 5])
    np.testing.assert_allclose(found[1], [3, 5] * (1 - np.tanh([-1.0, 2.0]) ** 2), rtol=1e-5)
    with pytest.raises(AttributeError, match="_NoSuchGrad"):
        _ = nn_grad._NoSuchGrad


def test_the_product_of_a_hessian_and_a_vector():
    product = inner("ops.gradients_impl")._hessian_vector_product
    rng = np.random.RandomState(0)
    form = rng.randn(3, 3).astype("float32")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(rng.randn(3, 1).astype("float32"))
        vector = rng.randn(3, 1).astype("float32")
        y = tf.reduce_sum(tf.matmul(x, tf.matmul(tf.constant(form), x), transpose_a=True))
        (found,) = sess.run(product(y, [x], [vector]))
    np.testing.assert_allclose(found, (form + form.T) @ vector, rtol=1e-5)
    with pytest.raises(ValueError, match="same length"):
        product(y, [x], [])


def test_sizes_and_arguments_of_convolutions():
    """The sizes are those of the operations."""
    utils = inner("layers.utils")
    for size in (7, 10):
        for edge, stride, dilation in ((3, 1, 1), (3, 2, 1), (2, 3, 1), (3, 1, 2)):
            for padding in ("same", "valid"):
                wanted = utils.conv_output_length(size, edge, padding, stride, dilation)
                with tf.Graph().as_default():
                    x, window = tf.zeros([1, size, size, 1]), tf.zeros([edge, edge, 1, 1])
                    strides = [1, stride, stride, 1]
                    y = tf.nn.conv2d(
                        x, window, strides, padding.upper(), dilations=[1, dilation, dilation, 1]
                    )
                    assert y.shape[1].value == wanted
                    z = tf.layers.conv2d_transpose(x, 1, edge, stride, padding)
                    assert z.shape[1].value == utils.deconv_output_length(
                        size, edge, padding, stride
                    )
    assert utils.conv_input_length(5, 3, "valid", 2) == 11
    assert utils.conv_output_length(None, 3, "same", 1) is None
    assert utils.normalize_tuple(2, 3, "strides") == (2, 2, 2)
    assert utils.convert_data_format("channels_first", 4) == "NCHW"
    assert utils.normalize_data_format("Channels_Last") == "channels_last"
    for wrong in (
        lambda: utils.normalize_tuple((1, 2), 3, "strides"),
        lambda: utils.normalize_padding("causal"),
        lambda: utils.convert_data_format("channels_last", 7),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_parts_of_slots_and_initializers():
    slots, init_ops = inner("training.slot_creator"), inner("ops.init_ops")
    variables = inner("ops.variables")
    with tf.Graph().as_default():
        weight = tf.get_variable("weight", [3, 3, 4, 5])
        slot = slots.create_zeros_slot(weight, "momentum")
        assert slot.op.name == "weight/momentum" and slot.shape == weight.shape
        assert isinstance(weight, variables.RefVariable)
    assert init_ops._compute_fans([3, 3, 4, 5]) == (36, 45)
    assert isinstance(init_ops.VarianceScaling(), init_ops.Initializer)


def test_shapes_that_are_broadcast_together():
    shapes = inner("framework.common_shapes")
    assert shapes.broadcast_shape([3, 1], [4]).as_list() == [3, 4]
    assert shapes.is_broadcast_compatible(tf.TensorShape([3, None]), tf.TensorShape([4]))
    assert not shapes.is_broadcast_compatible([3], [4])
    assert not shapes.is_broadcast_compatible(tf.TensorShape(None), [4])
    with pytest.raises(ValueError):
        shapes.broadcast_shape([3], [4])
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        assert shapes.rank(x) == 2 and not shapes.has_fully_defined_shape(x)
