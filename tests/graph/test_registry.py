"""Registering operations, kernels and gradients; misuse is explained."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.graph import gradient_registry, registry
from tests.both_tiers import run_both


@pytest.fixture
def name(request):
    """A name for an op of this test alone, forgotten afterwards."""
    chosen = "Op" + "".join(c for c in request.node.name.title() if c.isalnum())
    yield chosen
    registry._REGISTRY.pop(chosen, None)
    gradient_registry._GRADIENTS.pop(chosen, None)


def test_a_formula_gives_the_gradient_of_what_it_takes_and_returns(name):
    """y = (x * w + c, x): the formula says nothing of the second output, nor of c."""
    op_def = tf.register_op(
        name, inputs="x: T, w: T, c: T", outputs="y: T, z: T", attrs="T: {float, double}"
    )
    op_def.shape(lambda x, w, c: [x.dims, x.dims])
    op_def.kernel(lambda xp, x, w, c: [x * w + c, x])

    @op_def.formula
    def _(op, x, w):
        return x * w + op.inputs[2]

    x, w, c = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])
    y, z = op_def(x, w, c)
    found = tf.gradients([y, z], [x, w, c], grad_ys=[tf.constant([1.0, 10.0]), tf.ones([2])])
    assert found[2] is None
    by_x, by_w = run_both(found[:2])
    np.testing.assert_array_equal(by_x, [3, 40])
    np.testing.assert_array_equal(by_w, [1, 20])
    twice = op_def(x, x, c)[0]  # one tensor in two places: the gradients add up, once
    np.testing.assert_array_equal(run_both(tf.gradients(twice, x)[0]), [2, 4])
    with pytest.raises(KeyError, match="registered already, at .*test_registry"):
        op_def.gradient(lambda op, *grads: grads)


def test_a_new_operation_in_a_few_lines(name):
    cube = tf.register_op(name, inputs="x: T", outputs="y: T", attrs="T: {float, double}")

    @cube.shape
    def _(x):
        return x.dims

    @cube.kernel
    def _(xp, x):
        return x * x * x

    @cube.gradient
    def _(op, grad):
        return 3 * op.inputs[0] * op.inputs[0] * grad

    x = tf.constant([1.0, 2.0])
    y = cube(x, name="cubed")
    assert y.name == "cubed:0" and y.shape == [2]
    value, gradient = run_both([y, tf.gradients(y, x)[0]])
    np.testing.assert_array_equal(value, [1, 8])
    np.testing.assert_array_equal(gradient, [3, 12])


def test_registering_twice_cites_the_first(name):
    tf.register_op(name)
    with pytest.raises(ValueError, match=r"registered already, at .*test_registry\.py"):
        tf.register_op(name)


def test_a_second_gradient_cites_the_first(name):
    op = tf.register_op(name, inputs="x: float", outputs="y: float")

    @op.gradient
    def _(op, grad):
        return grad

    with pytest.raises(KeyError, match=r"registered already, at .*test_registry\.py"):
        op.gradient(lambda op, grad: grad)
    with pytest.raises(KeyError, match="registered already"):
        tf.RegisterGradient(name)(lambda op, grad: grad)


def test_a_second_kernel_for_the_same_device_and_type_cites_the_first(name):
    op = tf.register_op(name, inputs="x: T", outputs="y: T", attrs="T: type")
    op.kernel(lambda xp, x: x, device="GPU", dtype=tf.float32)
    op.kernel(lambda xp, x: x, device="GPU", dtype=tf.float64)
    with pytest.raises(ValueError, match=r"GPU and float32 is registered already, at .*test_reg"):
        op.kernel(lambda xp, x: x, device="gpu", dtype="float")


def test_the_most_specific_kernel_wins(name):
    op = tf.register_op(name, inputs="x: T", outputs="y: T", attrs="T: type")
    op.shape(lambda x: x.dims)
    op.kernel(lambda xp, x: x + 1)
    op.kernel(lambda xp, x: x + 2, dtype=tf.float64)
    op.kernel(lambda xp, x: x + 3, dtype=tf.float64, device="CPU")
    assert run_both(op(tf.constant(0, tf.int32))) == 1
    assert run_both(op(tf.constant(0, tf.float64))) == 3


def test_a_kernel_with_the_wrong_number_of_inputs_is_refused(name):
    op = tf.register_op(name, inputs="x: float, y: float", outputs="z: float")
    with pytest.raises(ValueError, match="takes 2 positional parameters, but must take 3"):
        op.kernel(lambda xp, x: x)


def test_a_kernel_that_names_an_unknown_attribute_is_refused(name):
    op = tf.register_op(name, inputs="x: T", outputs="y: T", attrs="T: type")

    def kernel(xp, x, *, axis):
        return x

    with pytest.raises(ValueError, match="'axis', which is not an attribute"):
        op.kernel(kernel)


def test_a_missing_kernel_lists_what_there_is(name):
    op = tf.register_op(name, inputs="x: T", outputs="y: T", attrs="T: type")
    op.kernel(lambda xp, x: x, dtype=tf.float64)
    y = op(tf.constant(1.0))
    with tf.Session() as sess, pytest.raises(tf.errors.UnimplementedError, match="float64") as e:
        sess.run(y)
    assert e.value.op is y.op
    assert "float32 on CPU" in e.value.message


def test_an_unknown_op_suggests_close_names():
    with pytest.raises(KeyError, match="MatMul"):
        tf.get_op_def("Matmul")


def test_wrong_use_of_an_op_is_explained(name):
    op = tf.register_op(
        name,
        inputs="x: T, n: int32",
        outputs="y: T",
        attrs=["T: {float, double}", "mode: {'a', 'b'}"],
    )
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"takes 2 inputs \(x, n\), not 1"):
        op(x)
    with pytest.raises(TypeError, match="needs the attribute 'mode'"):
        op(x, 1)
    with pytest.raises(ValueError, match="one of: 'a', 'b'"):
        op(x, 1, mode="c")
    with pytest.raises(TypeError, match="no attribute 'mood'"):
        op(x, 1, mood="a")
    with pytest.raises(TypeError, match="must be one of: float32, float64"):
        op(tf.constant(1), 1, mode="a")
    with pytest.raises(TypeError, match=r"Input 'n' .* must be of type int32.*test_registry\.py"):
        op(x, x, mode="a")


def test_gradient_override_map_uses_the_named_gradient(name):
    @tf.RegisterGradient(name)
    def _(op, grad):
        return grad * 42

    x = tf.constant(1.0)
    with tf.get_default_graph().gradient_override_map({"Identity": name}):
        y = tf.identity(x)
    with tf.Session() as sess:
        assert sess.run(tf.gradients(y, x)[0]) == 42


def test_signature_notation(name):
    op = tf.register_op(
        name,
        inputs="values: N * T, extra: Tlist",
        outputs="first: T, rest: Tlist",
        attrs=[
            "N: int >= 2",
            "T: numbertype",
            "Tlist: list(type)",
            "flags: list(bool) = [true, false]",
            "scale: float = 0.5",
        ],
    )
    a, b = tf.constant(1), tf.constant(2)
    first, rest = op([a, b], [tf.constant("s"), tf.constant(1.5)])
    assert first.dtype == tf.int32 and [t.dtype for t in rest] == [tf.string, tf.float32]
    assert first.op.attrs["N"] == 2 and first.op.attrs["flags"] == [True, False]
    assert first.op.get_attr("scale") == 0.5
    with pytest.raises(ValueError, match="at least 2"):
        op([a], [])


def test_a_tensor_may_be_the_default_of_an_attribute():
    attrs = ["T: type", "color: tensor = uint8[255, 0, 7]"]
    op_def = tf.register_op("TestTensorDefault", inputs="x: T", outputs="y: T", attrs=attrs)
    op_def.shape(lambda x: x.dims)
    op_def.kernel(lambda xp, x: x)
    op = op_def(tf.constant(1.0)).op
    assert op.get_attr("color").dtype == "uint8" and op.get_attr("color").tolist() == [255, 0, 7]
    written = tf.make_ndarray(op.node_def.attr["color"].tensor)
    assert written.tolist() == [255, 0, 7]
