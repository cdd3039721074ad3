"""Matrix products, contractions and linear algebra against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_fetches import assert_same_fetches
from tests.conformance.same_program import compare_graphs
from tests.conformance.side_by_side import compare

RNG = np.random.default_rng(6)
FLOATS = {
    "float16": (np.float16, 1e-2),
    "bfloat16": (ml_dtypes.bfloat16, 8e-2),
    "float32": (np.float32, 3e-5),
    "float64": (np.float64, 1e-10),
}


def normal(*shape):
    return RNG.normal(size=shape)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_in_every_float_type(dtype):
    kind, tolerance = FLOATS[dtype]
    compare(
        lambda tf, a, b, c, d: [tf.matmul(a, b), a @ b, tf.matmul(c, d)],
        *(x.astype(kind) for x in (normal(3, 4), normal(4, 2), normal(2, 3, 4), normal(2, 4, 2))),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(dtype):
    a, b = RNG.integers(-5, 5, (2, 3)).astype(dtype), RNG.integers(-5, 5, (3, 4)).astype(dtype)
    compare(lambda tf, x, y: [tf.matmul(x, y), tf.matmul(x[None], y[None])], a, b, order=0)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_transposed(ta, tb):
    a, b = normal(3, 4), normal(4, 2)
    a, b = (a.T if ta else a), (b.T if tb else b)

    def build(tf, x, y):
        return [
            tf.matmul(x, y, transpose_a=ta, transpose_b=tb),
            tf.matmul(x, y, adjoint_a=ta, adjoint_b=tb),
            tf.matmul(x[None], y[None], transpose_a=ta, transpose_b=tb),
            tf.matmul(x[None], y[None], adjoint_a=ta, adjoint_b=tb),
        ]

    compare(build, a, b, order=2, rtol=1e-9)


@pytest.mark.parametrize("ta", ["no", "transpose", "adjoint"])
def test_complex(ta):
    parts = [normal(3, 3) for _ in range(4)]
    options = {"no": {}, "transpose": {"transpose_a": True}, "adjoint": {"adjoint_b": True}}[ta]

    def build(tf, a, b, c, d):
        x, y = tf.complex(a, b), tf.complex(c, d)
        out = [tf.matmul(x, y, **options), tf.matmul(x[None], y[None], **options)]
        return [part(z) for z in out for part in (tf.real, tf.imag)]

    compare(build, *parts, rtol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (4, 2)), ((1, 3, 4), (6, 4, 1))],
)
@pytest.mark.parametrize("known", ["known", "unknown sizes", "unknown ranks"])
def test_batches_broadcast(a, b, known):
    shapes = {
        "known": None,
        "unknown sizes": [[None] * len(a), [None] * len(b)],
        "unknown ranks": [None, None],
    }[known]
    compare(lambda tf, x, y: tf.matmul(x, y), normal(*a), normal(*b), shapes=shapes, rtol=1e-9)


def test_matvec():
    compare(
        lambda tf, a, b: [tf.linalg.matvec(a, b), tf.linalg.matvec(a, b, transpose_a=True)],
        normal(2, 3, 3),
        normal(2, 3),
    )


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->i", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("jii->", (2, 3, 3)),
    ("ijk,k->j", (2, 3, 4), (4,)),
    ("i,j->ij", (2,), (3,)),
    ("ijk,ijl->kl", (2, 3, 4), (2, 3, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (1, 4, 2)),
    ("...ij,jk->...ik", (5, 2, 3, 4), (4, 2)),
    ("ij,...jk->...ik", (3, 4), (2, 4, 2)),
    ("bij,bkj->bk", (2, 3, 4), (2, 5, 4)),
    ("ij,ij->", (2, 3), (2, 3)),
    (" a b , b -> a ", (2, 3), (3,)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=[c[0] for c in EQUATIONS])
def test_einsum(case):
    equation, *shapes = case
    compare(
        lambda tf, *xs: tf.einsum(equation, *xs),
        *(normal(*s) for s in shapes),
        order=2 if "..." not in equation else 1,
        rtol=1e-9,
        atol=1e-10,
    )


def test_einsum_of_three_tensors():
    compare(
        lambda tf, a, b, c: tf.einsum("ij,jk,kl->il", a, b, c),
        normal(2, 3),
        normal(3, 4),
        normal(4, 5),
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    ("axes", "a", "b"),
    [
        (1, (2, 3), (3, 4)),
        (2, (2, 3, 4), (3, 4, 5)),
        (0, (2,), (3,)),
        ([[0], [1]], (2, 3), (4, 2)),
        ([[0, 1], [2, 0]], (2, 3, 4), (3, 5, 2)),
        ([-1, 0], (2, 3), (3, 4)),
        ([[1], [0]], (2, 3, 4), (3, 4)),
    ],
    ids=str,
)
def test_tensordot(axes, a, b):
    compare(lambda tf, x, y: tf.tensordot(x, y, axes), normal(*a), normal(*b), rtol=1e-9)
    shapes = [[None, *a[1:]], list(b)]
    compare(
        lambda tf, x, y: tf.tensordot(x, y, axes), normal(*a), normal(*b), shapes=shapes, rtol=1e-9
    )
    unknown = [[None] * len(a), [None] * len(b)]
    compare(
        lambda tf, x, y: tf.tensordot(x, y, axes), normal(*a), normal(*b), shapes=unknown, rtol=1e-9
    )


def test_norms():
    def build(tf, x):
        out = [tf.norm(x, ord) for ord in ("euclidean", 1, 2, 3.0, np.inf)]
        out += [tf.norm(x, ord, axis=1) for ord in ("euclidean", 1, 2, 3.0, np.inf)]
        out += [tf.norm(x, ord, axis=[0, 2], keepdims=True) for ord in ("fro", 1, np.inf)]
        out += [tf.norm(x, ord, axis=[-2, -1]) for ord in ("euclidean", 1, np.inf)]
        return out

    compare(build, normal(2, 3, 4), rtol=1e-9)


def test_cross_and_trace():
    compare(lambda tf, a, b: tf.cross(a, b), normal(2, 3), normal(2, 3), order=2)
    compare(lambda tf, a: tf.trace(a), normal(2, 3, 3))


def positive_definite(*shape):
    a = normal(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def test_linear_algebra():
    square, rhs = positive_definite(2, 3, 3), normal(2, 3, 2)

    def build(tf, a, b):
        return [
            *(tf.matrix_inverse(a), tf.matrix_inverse(a, adjoint=True)),
            *(tf.matrix_determinant(a), tf.linalg.slogdet(a)[1], tf.cholesky(a)),
            *(tf.matrix_solve(a, b), tf.matrix_solve(a, b, adjoint=True)),
            tf.matrix_triangular_solve(a, b),
            tf.matrix_triangular_solve(a, b, lower=False),
            tf.matrix_triangular_solve(a, b, adjoint=True),
            tf.matrix_triangular_solve(a, b, lower=False, adjoint=True),
        ]

    compare(build, square, rhs, rtol=1e-8, atol=1e-9)


def test_decompositions():
    square, tall = positive_definite(2, 3, 3), normal(2, 5, 3)

    def build(tf, a, b):
        e, v = tf.self_adjoint_eig(a)
        s, left, right = tf.svd(b)
        q, r = tf.qr(b)
        return [
            *(e, tf.square(v), tf.self_adjoint_eigvals(a), s, tf.svd(b, compute_uv=False)),
            *(tf.square(left), tf.square(right), tf.square(q), tf.square(r)),
            *(tf.linalg.logdet(a), tf.linalg.pinv(b), tf.linalg.adjoint(b)),
            *(tf.matrix_solve_ls(b, b[..., :1]), tf.matrix_solve_ls(b, b, l2_regularizer=0.3)),
        ]

    compare(build, square, tall, order=1, rtol=1e-6, atol=1e-7)


def test_complex_linear_algebra():
    re, im = positive_definite(3, 3), np.triu(normal(3, 3), 1)
    im = im - im.T

    def build(tf, a, b):
        z = tf.complex(a, b)
        rhs = tf.complex(b, a)
        out = [tf.matrix_inverse(z), tf.matrix_determinant(z), tf.matrix_solve(z, rhs)]
        out += [tf.cholesky(z), tf.matrix_triangular_solve(z, rhs, adjoint=True)]
        return [part(x) for x in out for part in (tf.real, tf.imag)]

    compare(build, re, im, order=0, rtol=1e-8, atol=1e-9)


def test_graphs():
    def program(tf):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.placeholder(tf.float32, [3, 2, 2], name="y")
        _ = [tf.matmul(x, x), tf.matmul(x, x, transpose_b=True, name="named"), tf.matmul(y, y)]
        _ = [tf.matmul(x, [[1.0], [2.0]]), tf.matmul([[1.0, 2.0]], x), x @ x, y @ x]
        _ = [tf.matrix_inverse(x), tf.cholesky(x, name="factor"), tf.matrix_determinant(x)]

    compare_graphs(program)


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_products_with_hints_of_zeros(turn_a, turn_b, kind):
    def build(tf):
        rng = np.random.default_rng(0)
        a = tf.cast(
            tf.constant(rng.integers(-3, 4, (4, 3) if turn_a else (3, 4)), tf.float32), kind
        )
        b = tf.cast(
            tf.constant(rng.integers(-3, 4, (5, 4) if turn_b else (4, 5)), tf.float32), kind
        )
        product = tf.sparse_matmul(a, b, turn_a, turn_b, a_is_sparse=True)
        assert product.shape.as_list() == [3, 5]
        gradients = tf.gradients(product * product, [a, b])
        return [product, *[tf.cast(g, tf.float32) for g in gradients]]

    assert_same_fetches(build)
