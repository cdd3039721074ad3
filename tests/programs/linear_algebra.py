"""Products and factorisations of matrices."""

from __future__ import annotations

import numpy as np

from tests.programs.program import integers, op, values

A = values(3, 4)
B = values(4, 2, seed=1)
BATCH = values(2, 3, 4, seed=2)
OTHER = values(2, 4, 2, seed=3)
VECTOR = values(4, seed=4)
SQUARE = values(2, 3, 3, seed=5) + 3 * np.eye(3, dtype=np.float32)
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1)
RIGHT = values(2, 3, 2, seed=6)

PROGRAMS = {
    "matmul": op(lambda tf, a, b: tf.matmul(a, b), A, B),
    "matmul_transposed": op(
        lambda tf, a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True), A, values(2, 3)
    ),
    "matmul_batched": op(lambda tf, a, b: tf.matmul(a, b), BATCH, OTHER),
    "matmul_broadcast": op(lambda tf, a, b: tf.matmul(a, b), BATCH, B),
    "matmul_adjoint": op(lambda tf, a, b: tf.matmul(a, b, adjoint_a=True), BATCH, RIGHT),
    "matmul_integer": op(
        lambda tf, a, b: tf.matmul(a, b), integers(3, 4, low=-5), integers(4, 2, seed=1)
    ),
    "matmul_float64": op(
        lambda tf, a, b: a @ b, A.astype(np.float64), B.astype(np.float64), rtol=1e-12
    ),
    "matmul_float16": op(
        lambda tf, a, b: a @ b, A.astype(np.float16), B.astype(np.float16), rtol=4e-3, atol=4e-3
    ),
    "matvec": op(lambda tf, a, v: tf.linalg.matvec(a, v), BATCH, VECTOR),
    "tensordot": op(lambda tf, a, b: tf.tensordot(a, b, 1), BATCH, B),
    "tensordot_axes": op(lambda tf, a, b: tf.tensordot(a, b, [[0, 2], [0, 1]]), BATCH, OTHER),
    "einsum": op(lambda tf, a, b: tf.einsum("bij,bjk->bik", a, b), BATCH, OTHER),
    "einsum_reduce": op(lambda tf, a, b: tf.einsum("bij,jk->ki", a, b), BATCH, B),
    "trace": op(lambda tf, s: tf.trace(s), SQUARE),
    "cross": op(lambda tf, a, b: tf.cross(a, b), values(2, 3), values(2, 3, seed=1)),
    "inverse": op(lambda tf, s: tf.matrix_inverse(s), SQUARE, rtol=1e-4, atol=1e-5),
    "determinant": op(lambda tf, s: tf.matrix_determinant(s), SQUARE, rtol=1e-4),
    "solve": op(lambda tf, s, r: tf.matrix_solve(s, r), SQUARE, RIGHT, rtol=1e-4, atol=1e-5),
    "triangular_solve": op(
        lambda tf, s, r: tf.matrix_triangular_solve(s, r), SQUARE, RIGHT, rtol=1e-4, atol=1e-5
    ),
    "cholesky": op(lambda tf, p: tf.cholesky(p), POSITIVE, rtol=1e-4, atol=1e-5),
}
