"""Binary arithmetic, division and Python's operators against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_program import compare_graphs
from tests.conformance.side_by_side import compare

RNG = np.random.default_rng(3)
FLOATS = {
    "float16": (np.float16, 4e-3),
    "bfloat16": (ml_dtypes.bfloat16, 4e-2),
    "float32": (np.float32, 2e-5),
    "float64": (np.float64, 1e-10),
}
X = RNG.uniform(0.5, 2.0, (3, 4))
Y = RNG.uniform(0.5, 2.0, (3, 4))

SMOOTH = {
    "add": lambda tf, x, y: tf.add(x, y),
    "subtract": lambda tf, x, y: tf.subtract(x, y),
    "multiply": lambda tf, x, y: tf.multiply(x, y),
    "realdiv": lambda tf, x, y: tf.realdiv(x, y),
    "floormod": lambda tf, x, y: tf.floormod(x, y),
    "pow": lambda tf, x, y: tf.pow(x, y),
    "maximum": lambda tf, x, y: tf.maximum(x, y),
    "minimum": lambda tf, x, y: tf.minimum(x, y),
    "squared_difference": lambda tf, x, y: tf.squared_difference(x, y),
    "atan2": lambda tf, x, y: tf.atan2(x, y),
    "div_no_nan": lambda tf, x, y: tf.div_no_nan(x, y),
    "multiply_no_nan": lambda tf, x, y: tf.math.multiply_no_nan(x, y),
    "xdivy": lambda tf, x, y: tf.math.xdivy(x, y),
    "xlogy": lambda tf, x, y: tf.math.xlogy(x, y),
    "xlog1py": lambda tf, x, y: tf.math.xlog1py(x, y),
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_function_in_every_float_type(dtype):
    kind, tolerance = FLOATS[dtype]
    compare(
        lambda tf, x, y: [f(tf, x, y) for f in SMOOTH.values()],
        X.astype(kind),
        Y.astype(kind),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives(name):
    compare(SMOOTH[name], X, Y, order=2, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("x", "y"),
    [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 4), (3, 1)), ((1,), (1, 1))],
)
@pytest.mark.parametrize("known", ["known", "unknown sizes", "unknown ranks"])
def test_broadcasting(x, y, known):
    shapes = {
        "known": None,
        "unknown sizes": [[None] * len(x), [None] * len(y)],
        "unknown ranks": [None, None],
    }[known]
    compare(
        lambda tf, a, b: [a * b, a - b, tf.maximum(a, b)],
        RNG.normal(size=x).astype(np.float32),
        RNG.normal(size=y).astype(np.float32),
        shapes=shapes,
        order=2,
    )


def test_no_reductions_where_the_shapes_decide():
    import runnel as tf

    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [4])
    same = tf.placeholder(tf.float32, [3, 4])
    before = len(tf.get_default_graph().get_operations())
    tf.gradients(same + same, same, grad_ys=same)
    types = [op.type for op in tf.get_default_graph().get_operations()[before:]]
    assert types == ["AddV2", "AddN"] or "Sum" not in types
    tf.gradients(x + y, [x, y], grad_ys=tf.placeholder(tf.float32, [None, 4]))
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert types.count("Sum") == 1 and "BroadcastGradientArgs" not in types


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    kind = np.dtype(dtype)
    x = np.array([7, 6, 100, 0, 5, 3], kind)
    y = np.array([2, 3, 7, 5, 1, 4], kind)
    if kind.kind == "i":
        x, y = x * np.array([1, -1, 1, 1, -1, -1], kind), y * np.array([1, 1, -1, 1, -1, 1], kind)

    def build(tf, a, b):
        out = [a + b, a - b, a * b, a // b, a % b, a / b, tf.maximum(a, b), tf.minimum(a, b)]
        out += [tf.truncatediv(a, b), tf.square(a)]
        if kind.kind == "i":
            out += [tf.pow(a, tf.abs(b)), -a, tf.abs(a), tf.sign(a)]
        if dtype in ("int32", "int64"):
            out += [tf.truncatemod(a, b), tf.squared_difference(a, b), tf.div(a, b)]
        return out

    compare(build, x, y, order=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_division_of_special_values(dtype):
    kind = FLOATS[dtype][0]
    values = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan])
    x, y = (a.reshape(-1).astype(kind) for a in np.meshgrid(values, values))
    compare(
        lambda tf, a, b: [
            a / b,
            a // b,
            tf.truncatediv(a, b),
            tf.div_no_nan(a, b),
            tf.math.multiply_no_nan(a, b),
            tf.math.xdivy(a, b),
            tf.math.xlogy(a, b),
            tf.maximum(a, b),
            tf.minimum(a, b),
        ],
        x,
        y,
        order=0,
    )


def test_remainders_of_special_values():
    values = np.array([1, -1, 2.5, -2.5, 7.5, -7.5, 1e-3], np.float64)
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values))
    compare(lambda tf, a, b: [a % b, tf.truncatemod(a, b)], x, y, order=0)


def test_powers_of_special_values():
    values = np.array([0.0, 1, -1, 2, -2, 0.5, np.inf, -np.inf], np.float64)
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values))
    compare(lambda tf, a, b: tf.pow(a, b), x, y, order=0)
    finite = np.array([0.0, 1.0, -2.0, 3.0])
    x, y = (a.reshape(-1) for a in np.meshgrid(finite, np.array([0.0, 1.0, 2.0, 3.0])))
    compare(lambda tf, a, b: tf.pow(a, b), x, y)


def test_complex_arithmetic():
    parts = [RNG.normal(size=(2, 3)) for _ in range(4)]

    def build(tf, a, b, c, d):
        x, y = tf.complex(a, b), tf.complex(c, d)
        results = [x + y, x - y, x * y, x / y, tf.pow(x, y), tf.squared_difference(x, y)]
        results += [tf.square(x), -x, tf.div_no_nan(x, y), tf.reciprocal(x)]
        return [part(z) for z in results for part in (tf.real, tf.imag)]

    compare(build, *parts, rtol=1e-8, atol=1e-8)


def test_add_n_and_accumulate_n():
    arrays = [RNG.normal(size=(2, 2)) for _ in range(3)]
    compare(lambda tf, a, b, c: [tf.add_n([a, b, c, a]), tf.accumulate_n([a, b, c])], *arrays)


def test_other_functions():
    compare(
        lambda tf, x: [
            tf.scalar_mul(3.0, x),
            tf.math.polyval([1.0, -2.0, 3.0], x),
            tf.math.reciprocal_no_nan(x),
            tf.math.nextafter(x, tf.zeros_like(x)),
        ],
        np.array([1.0, 0.0, -2.0], np.float32),
        order=0,
    )


def test_strings_are_concatenated():
    x = np.array([b"a", b"bc"], object)
    compare(lambda tf, a, b: [tf.add(a, b), a + b, a + "!", "!" + a], x, x[::-1], order=0)


def test_graphs_of_operators():
    """Names and types of everything that operators and functions make."""

    def program(tf):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        i = tf.placeholder(tf.int32, [2], name="i")
        b = tf.placeholder(tf.bool, [2], name="b")
        _ = [x + x, x + 1.0, 2.0 + x, x - 1, 3 - x, x * 2, 2 * x, x / 2, 1 / x, x // 2, x % 2]
        _ = [x**2, 2**x, -x, abs(x), x @ x, x < 1, x <= x, x > 1.0, x >= x]
        _ = [i / 2, i // 2, i % 2, i / i, 7 // i]
        _ = [b & b, b | True, b ^ b, ~b, False & b]
        with tf.name_scope("scope"):
            _ = [x + x, x + 1.0, tf.add(x, 1.0), tf.add(x, x, name="named")]
        _ = [tf.subtract(x, 1.0), tf.multiply(x, x), tf.divide(x, 2.0), tf.div(x, x), tf.div(i, i)]
        _ = [tf.truediv(i, i), tf.floordiv(x, x), tf.mod(x, x), tf.pow(x, 2.0), tf.floor_div(i, i)]
        _ = [tf.maximum(x, 0.0), tf.minimum(0.0, x), tf.add_n([x, x]), tf.add_n([x])]
        _ = [tf.scalar_mul(2.0, x), tf.math.xlogy(x, x), tf.div_no_nan(x, x), tf.negative(x)]
        _ = [tf.square(x), tf.abs(x), tf.sqrt(x), tf.tanh(x), tf.sigmoid(x), tf.reciprocal(x)]
        _ = [x + np.float64(1.0), np.float32(2.0) * x, x + np.ones((2, 2)), np.ones((2, 2)) - x]

    compare_graphs(program)
