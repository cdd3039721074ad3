"""Binary arithmetic with broadcasting, in both tiers, against NumPy and finite differences."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (2, 3))
Y = RNG.uniform(0.5, 2.0, (2, 3))
ORACLES = {
    tf.add: np.add,
    tf.subtract: np.subtract,
    tf.multiply: np.multiply,
    tf.realdiv: np.divide,
    tf.floordiv: np.floor_divide,
    tf.floormod: np.mod,
    tf.truncatemod: np.fmod,
    tf.pow: np.power,
    tf.maximum: np.maximum,
    tf.minimum: np.minimum,
    tf.squared_difference: lambda x, y: (x - y) ** 2,
    tf.atan2: np.arctan2,
    tf.div_no_nan: np.divide,
}
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("kind", TYPES)
def test_values_and_types(kind):
    x, y = tf.constant(X.astype(kind)), tf.constant(Y.astype(kind))
    values = run_both([f(x, y) for f in ORACLES], rtol=2e-2, atol=1e-2)
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[np.dtype(kind).itemsize]
    for oracle, value in zip(ORACLES.values(), values, strict=True):
        expected = oracle(*(a.astype(kind).astype(np.float64) for a in (X, Y)))
        assert value.dtype == kind
        np.testing.assert_allclose(value.astype(np.float64), expected, tolerance, tolerance)


@pytest.mark.parametrize("function", [tf.add, tf.subtract, tf.multiply, tf.realdiv, tf.maximum])
@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((3,), (2, 1, 3))]
)
def test_broadcast_gradients(function, shapes):
    rng = np.random.default_rng(0)  # not one that depends on which tests have run before
    x, y = (rng.normal(size=s) for s in shapes)
    if function is tf.realdiv:
        y = np.abs(y) + 1.0
    assert_derivatives(lambda a, b: function(a, b) * tf.cos(function(a, b)), x, y)


@pytest.mark.parametrize(
    "function",
    [tf.pow, tf.squared_difference, tf.atan2, tf.div_no_nan, tf.math.xlogy, tf.math.xlog1py]
    + [tf.math.xdivy, tf.math.multiply_no_nan, tf.truncatemod, tf.floormod],
)
def test_gradients(function):
    x, y = X, Y + 2  # away from the jumps of the remainders
    assert_derivatives(lambda a, b: function(a * a, b), x, y, tolerance=1e-4)


def test_unknown_sizes_are_reduced_when_the_step_runs():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    grads = tf.gradients(tf.multiply(x, y), [x, y])
    values = run_both(grads, {x: np.ones((4, 3)), y: np.full((1, 3), 2.0)})
    np.testing.assert_array_equal(values[0], np.full((4, 3), 2.0))
    np.testing.assert_array_equal(values[1], np.full((1, 3), 4.0))


def test_gradients_without_stretched_dimensions_add_no_reductions():
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [4])
    same = tf.placeholder(tf.float32, [2, 4])
    tf.gradients([x * y, same * same], [x, y, same])
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert types.count("Sum") == 1  # that of y over the batch
    assert "BroadcastGradientArgs" not in types


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integer_division(kind):
    x = np.array([7, 7, 100, 0], kind)
    y = np.array([2, 3, 7, 5], kind)
    if kind.startswith("i"):
        x = np.concatenate([x, -x])
        y = np.concatenate([y, y])
    a, b = tf.constant(x), tf.constant(y)
    floor, mod, truncated, real = run_both([a // b, a % b, tf.truncatediv(a, b), a / b])
    np.testing.assert_array_equal(floor, x // y)
    np.testing.assert_array_equal(mod, x % y)
    np.testing.assert_array_equal(truncated, np.trunc(x / y).astype(kind))
    assert floor.dtype == mod.dtype == truncated.dtype == np.dtype(kind)
    assert real.dtype == (np.float32 if np.dtype(kind).itemsize < 4 else np.float64)
    np.testing.assert_allclose(real, x / y, rtol=1e-6)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("function", [tf.floordiv, tf.mod, tf.truncatediv, tf.div])
def test_integer_division_by_zero_is_an_error(level, function):
    x, y = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [2])
    z = function(x, y)
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero") as caught:
            sess.run(z, {x: [1, 2], y: [1, 0]})
        assert caught.value.op is z.op
        assert sess.run(z, {x: [4, 6], y: [2, 3]}).shape == (2,)  # the session still works


CORNERS = [-np.inf, -3.0, -1.5, -1.0, -0.3, -0.0, 0.0, 0.3, 1.0, 2.5, np.inf, np.nan, 1e-30, -1e30]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "exponent", [-3, -2, -1, 0, 1, 2, 3, 4, 5, 10, 2.0**24, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.3]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_with_one_exponent_are_those_with_many(dtype, exponent):
    """Also of negative numbers, infinities and zeros, with their signs."""
    x = np.array(CORNERS, dtype)
    exponent = np.asarray(exponent, dtype)
    with tf.Session() as sess:
        found = sess.run(tf.pow(tf.constant(x), tf.constant(exponent)))
    expected = np.power(x, np.full(x.shape, exponent))
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 3e-6)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_negative_powers_of_integers_are_an_error(level):
    y = tf.placeholder(tf.int32, [])
    with session(level) as sess:
        assert sess.run(tf.pow(3, y), {y: 4}) == 81
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
            sess.run(tf.pow(3, y), {y: -1})


def test_zero_times_infinity_where_that_is_asked_for():
    x = tf.constant([1.0, np.inf, np.nan, 0.0])
    zero = tf.constant(0.0)
    values = run_both(
        [tf.div_no_nan(x, zero), tf.math.multiply_no_nan(x, zero), tf.math.xlogy(zero, x - x)]
    )
    for value in values:
        np.testing.assert_array_equal(value, np.zeros(4))


def test_sums_of_many():
    x = [tf.constant(v) for v in (X, Y, X)]
    values = run_both([tf.add_n(x), tf.accumulate_n(x), tf.add_n(x[:1])])
    for value, expected in zip(values, [2 * X + Y, 2 * X + Y, X], strict=True):
        np.testing.assert_allclose(value, expected)
    assert_derivatives(lambda a, b: tf.add_n([a, a * b, b]), X, Y)
    # The first input must not be written to.
    first, total = run_both([x[0], tf.add_n(x)])
    np.testing.assert_array_equal(first, X)


def test_sums_of_different_shapes():
    with pytest.raises(ValueError, match="same rank|not compatible"):
        tf.add_n([tf.zeros([2]), tf.zeros([3])])
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="same"):
            sess.run(tf.add_n([a, b]), {a: [1.0], b: [1.0, 2.0]})
    with pytest.raises(ValueError, match="at least one"):
        tf.add_n([])


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        tf.add(tf.zeros([2]), tf.zeros([3]))
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="shapes"):
            sess.run(x + y, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})


def test_types_that_do_not_fit():
    with pytest.raises(TypeError, match="float32"):
        tf.add(tf.constant(1.0), tf.constant(1))
    with pytest.raises(TypeError):
        tf.truediv(tf.constant(1.0), tf.constant(1))


def test_scalar_mul_keeps_slices_sparse():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
    scaled = tf.scalar_mul(2.0, slices)
    assert isinstance(scaled, tf.IndexedSlices)
    np.testing.assert_array_equal(run_both(scaled.values), [[2.0, 4.0]])
    with pytest.raises(ValueError, match="scalar"):
        tf.scalar_mul([1.0, 2.0], tf.constant([1.0]))


def test_strings():
    x = tf.constant(["a", "b"])
    np.testing.assert_array_equal(run_both(x + "!"), [b"a!", b"b!"])
    assert run_both(tf.constant("a") + tf.constant("b")) == b"ab"


@pytest.mark.parametrize(
    "function", [tf.floordiv, tf.floormod, tf.truncatediv, tf.truncatemod, tf.div]
)
def test_no_integers_are_divided_by_zero_without_an_error(function):
    none, zero = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [])
    assert run_both(function(none, zero), {none: [], zero: 0}).tolist() == []


def test_the_gradient_of_a_product_of_a_scalar_over_no_axes():
    x, axes = tf.placeholder(tf.float64, None), tf.placeholder(tf.int32, [None])
    (gradient,) = tf.gradients(tf.reduce_prod(x, axes) * 3.0, x)
    assert run_both(gradient, {x: 5.0, axes: []}) == 3.0
