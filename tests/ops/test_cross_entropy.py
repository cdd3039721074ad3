"""The softmax cross-entropies: values, stability, broadcasting, derivatives, errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(4, 5)) * 3
CLASSES = np.array([0, 4, 2, 2])


def log_softmax(x):
    z = x - x.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def distribution(*shape):
    p = RNG.uniform(0.1, 1, shape)
    return p / p.sum(-1, keepdims=True)


def tolerance(dtype):
    return {np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2, np.float32: 1e-6}.get(dtype, 1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dense(dtype):
    labels, logits = distribution(4, 5).astype(dtype), LOGITS.astype(dtype)
    arguments = {"labels": tf.constant(labels), "logits": tf.constant(logits)}
    loss = run_both(tf.nn.softmax_cross_entropy_with_logits_v2(**arguments), rtol=1e-2)
    assert loss.dtype == logits.dtype
    wide = -(labels.astype(np.float64) * log_softmax(logits.astype(np.float64))).sum(-1)
    np.testing.assert_allclose(
        loss.astype(np.float64), wide, rtol=tolerance(dtype), atol=tolerance(dtype) / 10
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse(dtype, index):
    logits = LOGITS.astype(dtype)
    loss = run_both(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.constant(CLASSES.astype(index)), logits=tf.constant(logits)
        ),
        rtol=1e-2,
    )
    assert loss.dtype == logits.dtype
    wide = -log_softmax(logits.astype(np.float64))[np.arange(4), CLASSES]
    np.testing.assert_allclose(
        loss.astype(np.float64), wide, rtol=tolerance(dtype), atol=tolerance(dtype) / 10
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_dense_over_an_axis(axis):
    logits = RNG.normal(size=(2, 3, 4))
    labels = np.moveaxis(distribution(4, 3, 2), (0, 1, 2), (2, 1, 0))
    loss = run_both(tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits, axis=axis))
    last = np.moveaxis(logits, axis, -1)
    expected = -(np.moveaxis(labels, axis, -1) * log_softmax(last)).sum(-1)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_one_dimension_and_unknown_shapes():
    x = tf.placeholder(tf.float64)
    z = tf.placeholder(tf.float64)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)
    for shape in ((5,), (2, 5), (2, 3, 5)):
        labels, logits = distribution(*shape), RNG.normal(size=shape)
        found = run_both(loss, {x: logits, z: labels})
        np.testing.assert_allclose(found, -(labels * log_softmax(logits)).sum(-1), rtol=1e-12)


def test_sparse_of_any_rank():
    logits = RNG.normal(size=(2, 3, 4))
    classes = RNG.integers(0, 4, (2, 3))
    expected = -np.take_along_axis(log_softmax(logits), classes[..., None], -1)[..., 0]
    x = tf.placeholder(tf.float64)
    z = tf.placeholder(tf.int64)
    known = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
    unknown = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x)
    assert known.shape.as_list() == [2, 3]
    for value in run_both([known, unknown], {x: logits, z: classes}):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
    single = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=logits[0, 0])
    np.testing.assert_allclose(run_both(single), -log_softmax(logits[0, 0])[1])


def test_large_logits():
    logits = np.array([[1e4, 0.0], [-1e30, 1e30]], np.float32)
    dense = tf.nn.softmax_cross_entropy_with_logits_v2([[0.0, 1.0], [0.0, 1.0]], logits)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 1], logits=logits)
    for loss in run_both([dense, sparse]):
        np.testing.assert_array_equal(loss, [1e4, 0.0])


def test_a_class_excluded_by_minus_infinity_costs_nothing():
    loss = tf.nn.softmax_cross_entropy_with_logits_v2([[0.0, 1.0]], [[-np.inf, 3.0]])
    np.testing.assert_array_equal(run_both(loss), [0.0])


def test_labels_broadcast():
    labels = distribution(1, 5)
    x, z = tf.constant(LOGITS), tf.constant(labels)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(z, x)
    value, dx, dz = run_both([loss, *tf.gradients(loss, [x, z])])
    np.testing.assert_allclose(value, -(labels * log_softmax(LOGITS)).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(dx, np.exp(log_softmax(LOGITS)) - labels, rtol=1e-9)
    np.testing.assert_allclose(dz, -log_softmax(LOGITS).sum(0, keepdims=True), rtol=1e-12)


def test_first_derivatives():
    labels = distribution(2, 3)
    dense = tf.nn.softmax_cross_entropy_with_logits_v2
    assert_derivatives(lambda x: dense(labels=labels, logits=x), LOGITS[:2, :3], order=3)
    assert_derivatives(lambda z: dense(labels=z, logits=LOGITS[:2, :3]), labels, order=1)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits
    assert_derivatives(lambda x: sparse(labels=[2, 0], logits=x), LOGITS[:2, :3], order=3)


@pytest.mark.parametrize("batch", [4, None])
def test_a_first_derivative_costs_no_second_softmax(batch):
    x = tf.placeholder(tf.float32, [batch, 5])
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=CLASSES, logits=x)
    dense = tf.nn.softmax_cross_entropy_with_logits(labels=distribution(4, 5), logits=x)
    tf.gradients([sparse, dense], x)
    assert not [op for op in tf.get_default_graph().get_operations() if op.type == "Softmax"]


def test_mixed_second_derivative():
    x, z = tf.constant(LOGITS), tf.constant(distribution(4, 5))
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)
    slope = tf.gradients(loss, x)[0]  # softmax(x) - z
    np.testing.assert_array_equal(run_both(tf.gradients(slope, z)[0]), -np.ones((4, 5)))


def test_old_version_takes_labels_as_constants():
    x, z = tf.constant(LOGITS), tf.constant(distribution(4, 5))
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=z, logits=x)
    assert loss.op.name == "softmax_cross_entropy_with_logits_sg"
    assert tf.gradients(loss, z) == [None]
    new = tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)
    old_grad, new_grad = run_both([tf.gradients(loss, x)[0], tf.gradients(new, x)[0]])
    np.testing.assert_array_equal(old_grad, new_grad)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("label", [5, -1])
def test_label_out_of_range(level, label):
    z = tf.placeholder(tf.int32, [4])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=z, logits=tf.constant(LOGITS), name="loss"
    )
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{label} .*\[0, 5\)") as caught:
            sess.run(loss, {z: [0, label, 1, 2]})
        assert caught.value.op.type == "SparseSoftmaxCrossEntropyWithLogits"
        assert sess.run(loss, {z: CLASSES}).shape == (4,)


def test_shapes_that_do_not_fit_when_run():
    x, z = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x)
    p = tf.placeholder(tf.float32)
    dense = tf.nn.softmax_cross_entropy_with_logits_v2(labels=p, logits=x)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            with pytest.raises(tf.errors.InvalidArgumentError, match="one label for each row"):
                sess.run(sparse, {x: np.zeros((2, 3)), z: [0, 1, 2]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="at least one class"):
                sess.run(sparse_op(x, z), {x: np.zeros((2, 0)), z: [0, 1]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
                sess.run(dense, {x: np.zeros((2, 3)), p: np.zeros((2, 4))})


def sparse_op(x, z):
    return tf.get_op_def("SparseSoftmaxCrossEntropyWithLogits")(x, z)[0]


def test_mistakes_when_building():
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits
    with pytest.raises(ValueError, match="named arguments"):
        sparse([0], [[1.0]])
    with pytest.raises(ValueError, match="named arguments"):
        tf.nn.softmax_cross_entropy_with_logits([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="needs both"):
        sparse(labels=[0])
    with pytest.raises(ValueError, match="Rank mismatch"):
        sparse(labels=[[1]], logits=[[1.0]])
    with pytest.raises(ValueError, match="Shape mismatch"):
        sparse(labels=[0, 0], logits=[[1.0]])
    with pytest.raises(ValueError, match="scalar"):
        sparse(labels=0, logits=1.0)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[1.0, 2, 3]], logits=[[1.0, 2]])


def test_on_an_accelerator_a_wrong_label_gives_nan_and_no_check():
    """As TensorFlow on a GPU: nothing has to be awaited before the next step."""
    import jax.numpy as jnp

    op_def = tf.get_op_def("SparseSoftmaxCrossEntropyWithLogits")
    [kernel] = op_def.kernels
    logits = jnp.asarray(np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]], np.float32))

    def check(holds, explain):
        raise AssertionError("nothing may be checked")

    loss, backprop = kernel.function(
        jnp, logits, jnp.asarray([1, 2, -1]), check=check, platform="gpu"
    )
    expected = [np.log1p(np.exp(-1.0)), np.nan, np.nan]
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert np.isnan(backprop[1:]).all() and np.isfinite(backprop[0]).all()
