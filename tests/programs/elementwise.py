"""Arithmetic element by element: broadcasting, comparisons, element types, special values."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.programs.program import integers, op, values

X = values(2, 3)
Y = values(2, 3, seed=1)
POSITIVE = values(2, 3, low=0.1, high=3.0, seed=2)
UNIT = values(2, 3, low=-0.9, high=0.9, seed=3)
ROW = values(3, seed=4)
COLUMN = values(2, 1, seed=5)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 3e38], np.float32)
I = integers(2, 3, low=-9, high=10)
J = integers(2, 3, low=1, high=5, seed=1)
UNSIGNED = integers(6, high=256, seed=2).astype(np.uint8)
WIDE = integers(6, low=-(2**31), high=2**31 - 1, seed=3).astype(np.int64) * 3
BOOLS = integers(2, 3, high=2, seed=4).astype(bool)
OTHERS = integers(2, 3, high=2, seed=5).astype(bool)
COMPLEX = (X + 1j * Y).astype(np.complex64)
HALF = values(4, seed=6).astype(np.float16)
BRAIN = values(4, seed=7).astype(ml_dtypes.bfloat16)
DOUBLE = values(4, seed=8).astype(np.float64)

PROGRAMS = {
    # Broadcasting and its gradient.
    "add_row": op(lambda tf, x, y: x + y, X, ROW),
    "subtract_column": op(lambda tf, x, y: x - y, X, COLUMN),
    "multiply_outer": op(lambda tf, x, y: x * y, COLUMN, ROW),
    "divide": op(lambda tf, x, y: x / y, X, POSITIVE),
    "div_no_nan": op(lambda tf, x, y: tf.div_no_nan(x, y), X, np.array([0, 1, 2], np.float32)),
    "maximum": op(lambda tf, x, y: tf.maximum(x, y), X, Y),
    "minimum": op(lambda tf, x, y: tf.minimum(x, y), X, ROW),
    "pow": op(lambda tf, x, y: tf.pow(x, y), POSITIVE, Y),
    "squared_difference": op(lambda tf, x, y: tf.squared_difference(x, y), X, ROW),
    "atan2": op(lambda tf, x, y: tf.atan2(x, y), X, POSITIVE),
    "add_n": op(lambda tf, x, y: tf.add_n([x, y, x]), X, Y),
    # Functions of one number.
    "exp": op(lambda tf, x: tf.exp(x), X),
    "log": op(lambda tf, x: tf.log(x), POSITIVE),
    "log1p_expm1": op(lambda tf, x: [tf.log1p(x), tf.expm1(x)], POSITIVE),
    "sqrt_rsqrt": op(lambda tf, x: [tf.sqrt(x), tf.rsqrt(x)], POSITIVE),
    "square_reciprocal": op(lambda tf, x: [tf.square(x), tf.reciprocal(x)], POSITIVE),
    "abs_sign_negative": op(lambda tf, x: [tf.abs(x), tf.sign(x), -x], X),
    "tanh_sigmoid": op(lambda tf, x: [tf.tanh(x), tf.sigmoid(x)], X),
    "sin_cos_tan": op(lambda tf, x: [tf.sin(x), tf.cos(x), tf.tan(x)], UNIT),
    "asin_acos_atan": op(lambda tf, x: [tf.asin(x), tf.acos(x), tf.atan(x)], UNIT),
    "sinh_cosh": op(lambda tf, x: [tf.sinh(x), tf.cosh(x)], X),
    "asinh_acosh": op(lambda tf, x: [tf.asinh(x), tf.acosh(1.5 + tf.abs(x))], X),
    "atanh": op(lambda tf, x: tf.atanh(x), UNIT),
    "erf_erfc": op(lambda tf, x: [tf.erf(x), tf.erfc(x)], X),
    "lgamma_digamma": op(lambda tf, x: [tf.lgamma(x), tf.digamma(x)], POSITIVE, rtol=1e-4),
    "floor_ceil_rint": op(lambda tf, x: [tf.floor(x), tf.ceil(x), tf.rint(x), tf.round(x)], X),
    "special_values": op(
        lambda tf, x: [tf.is_nan(x), tf.is_inf(x), tf.is_finite(x), tf.sqrt(x), tf.exp(x), x * 2],
        SPECIAL,
        gradient=False,
    ),
    "clip_by_value": op(lambda tf, x: tf.clip_by_value(x, -1.0, 0.5), X),
    "clip_by_norm": op(lambda tf, x: tf.clip_by_norm(x, 1.5), X),
    "clip_by_global_norm": op(lambda tf, x, y: tf.clip_by_global_norm([x, y], 2.0)[0], X, ROW),
    # Comparisons and logic.
    "comparisons": op(
        lambda tf, x, y: [x < y, x <= y, x > y, x >= y, tf.equal(x, y), tf.not_equal(x, y)], X, Y
    ),
    "logic": op(
        lambda tf, a, b: [a & b, a | b, tf.logical_xor(a, b), tf.logical_not(a)], BOOLS, OTHERS
    ),
    "where": op(lambda tf, c, x, y: tf.where(c, x, y), BOOLS, X, Y),
    "where_v2": op(lambda tf, c, x, y: tf.where_v2(c, x, y), BOOLS, X, ROW),
    # Integers: which way they divide, where they wrap.
    "integer_division": op(
        lambda tf, i, j: [i // j, i % j, tf.truncatediv(i, j), tf.truncatemod(i, j), i / j], I, J
    ),
    "integer_arithmetic": op(lambda tf, i, j: [i + j, i - j, i * j, tf.pow(i, j), abs(i)], I, J),
    "unsigned_wrap": op(lambda tf, u: [u + u, u * u, u - 200], UNSIGNED),
    "int64": op(lambda tf, w: [w * 5, w // 7, w % 7, tf.sign(w)], WIDE),
    "bitwise": op(
        lambda tf, i, j: [
            tf.bitwise.bitwise_and(i, j),
            tf.bitwise.bitwise_xor(i, j),
            tf.bitwise.left_shift(i, j),
            tf.bitwise.right_shift(i, j),
        ],
        I,
        J,
    ),
    # Other element types.
    "float64": op(lambda tf, x: [tf.exp(x) * tf.sin(x), tf.log1p(x * x)], DOUBLE, rtol=1e-12),
    "float16": op(lambda tf, x: tf.exp(x) * x + 1, HALF, rtol=2e-3, atol=2e-3),
    "bfloat16": op(lambda tf, x: tf.exp(x) * x + 1, BRAIN, rtol=2e-2, atol=2e-2),
    "complex": op(
        lambda tf, z: [z * z, tf.conj(z), tf.real(z), tf.imag(z), tf.abs(z), tf.exp(z)],
        COMPLEX,
        gradient=False,
    ),
    "cast": op(
        lambda tf, x: [tf.cast(x * 10, t) for t in ("int32", "int64", "bool", "float64")], X
    ),
    "cast_down": op(lambda tf, w: [tf.cast(w, t) for t in ("int32", "int8", "float32")], WIDE),
    "saturate_cast": op(lambda tf, x: tf.saturate_cast(x * 200, tf.uint8), X),
    "bitcast": op(lambda tf, x: tf.bitcast(x, tf.int32), X, gradient=False),
}
