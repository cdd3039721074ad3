"""Matrix products and contractions, in both tiers, against NumPy and finite differences."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.normal(size=shape)


A, B = normal(2, 3), normal(3, 4)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32])
def test_types(kind):
    a, b = (A * 3).astype(kind), (B * 3).astype(kind)
    value = run_both(tf.matmul(tf.constant(a), tf.constant(b)), rtol=2e-2, atol=2e-2)
    assert value.dtype == kind
    tolerance = 2e-2 if np.dtype(kind).itemsize == 2 else 1e-5
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(value.astype(np.float64), expected, tolerance, tolerance)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed(transpose_a, transpose_b):
    a, b = (A.T if transpose_a else A), (B.T if transpose_b else B)

    def multiply(x, y):
        return tf.matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)

    tensor = multiply(tf.constant(a), tf.constant(b))
    assert tensor.shape == (2, 4)
    np.testing.assert_allclose(run_both(tensor), A @ B, rtol=1e-12)
    assert_derivatives(lambda x, y: tf.square(multiply(x, y)), a, b, tolerance=1e-4)
    batch = multiply(tf.constant(a[None]), tf.constant(b[None]))
    np.testing.assert_allclose(run_both(batch), (A @ B)[None], rtol=1e-12)
    assert_derivatives(lambda x, y: multiply(x[None], y[None]), a, b, tolerance=1e-4)


@pytest.mark.parametrize("rows", [1, 3, 16, 17, 31, 32])
def test_few_rows_by_a_large_transposed_matrix(rows):
    a = RNG.integers(-4, 5, (rows, 2048)).astype(np.float32)
    b = RNG.integers(-4, 5, (2048, 2048)).astype(np.float32)
    value = run_both(tf.matmul(tf.constant(a), tf.constant(b), transpose_b=True))
    np.testing.assert_array_equal(value, a @ b.T)  # sums of small integers are exact
    value = run_both(
        tf.matmul(tf.constant(a.T), tf.constant(b), transpose_a=True, transpose_b=True)
    )
    np.testing.assert_array_equal(value, a @ b.T)


def test_complex():
    a, b = A + 1j * normal(2, 3), B + 1j * normal(3, 4)
    x, y = tf.constant(a), tf.constant(b)
    values = run_both(
        [
            tf.matmul(x, y),
            tf.matmul(x, x, transpose_b=True),
            tf.matmul(x, x, adjoint_b=True),
            tf.matmul(x[None], x[None], transpose_b=True),
            tf.matmul(x[None], x[None], adjoint_b=True),
        ]
    )
    expected = [a @ b, a @ a.T, a @ a.conj().T, [a @ a.T], [a @ a.conj().T]]
    for value, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (4, 2))]
)
def test_batches_broadcast(a, b):
    x, y = normal(*a), normal(*b)
    tensor = tf.matmul(tf.constant(x), tf.constant(y))
    assert tuple(tensor.shape.as_list()) == (x @ y).shape
    np.testing.assert_allclose(run_both(tensor), x @ y, rtol=1e-12)
    assert_derivatives(lambda p, q: tf.square(tf.matmul(p, q)), x, y, order=1, tolerance=1e-4)


def test_batches_of_unknown_shape():
    a, b = tf.placeholder(tf.float64), tf.placeholder(tf.float64, [None, None, None])
    x, y = normal(1, 2, 3), normal(4, 3, 2)
    product = tf.matmul(a, b)
    value, grad_a, grad_b = run_both([product, *tf.gradients(product, [a, b])], {a: x, b: y})
    np.testing.assert_allclose(value, x @ y, rtol=1e-12)
    ones = np.ones((4, 2, 2))
    np.testing.assert_allclose(grad_a, (ones @ y.swapaxes(1, 2)).sum(0, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(grad_b, x.swapaxes(1, 2) @ ones, rtol=1e-12)


def test_mistakes():
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="rank 2 but is rank 1"):
        tf.matmul(tf.zeros([3]), tf.zeros([3, 2]))
    with pytest.raises(ValueError, match="Only one of transpose"):
        tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2]), transpose_a=True, adjoint_a=True)
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="In\\[0\\]"),
        ):
            sess.run(tf.matmul(x, y), {x: np.ones((2, 3)), y: np.ones((2, 3))})


def test_matvec():
    a, v = normal(2, 3, 4), normal(2, 4)
    np.testing.assert_allclose(run_both(tf.linalg.matvec(a, v)), (a @ v[..., None])[..., 0])


# Contractions -------------------------------------------------------------------------------------

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ijk->j", (2, 3, 4)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("...ii->...", (2, 3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (2, 3, 4), (1, 4, 2)),
    ("...ij,jk->...ik", (5, 2, 3), (3, 2)),
    ("ij,...jk->...ik", (3, 4), (2, 4, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=[c[0] for c in EQUATIONS])
def test_einsum(case):
    equation, *shapes = case
    arrays = [normal(*s) for s in shapes]
    tensor = tf.einsum(equation, *(tf.constant(a) for a in arrays))
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(run_both(tensor), expected, rtol=1e-10, atol=1e-12)
    assert tensor.shape.as_list() == list(expected.shape)
    assert_derivatives(
        lambda *xs: tf.square(tf.einsum(equation, *xs)), *arrays, order=1, tolerance=1e-4
    )


def test_einsum_onto_a_diagonal():
    diagonal = tf.get_op_def("Einsum")([tf.constant([1.0, 2.0])], equation="i->ii")
    np.testing.assert_array_equal(run_both(diagonal), [[1, 0], [0, 2]])
    x = normal(2, 3)
    spread = tf.get_op_def("Einsum")([tf.constant(x)], equation="ij->iji")
    expected = np.einsum("ij,ik->ijk", x, np.eye(2))
    np.testing.assert_allclose(run_both(spread), expected)


def test_einsum_mistakes():
    with pytest.raises(ValueError, match="of 2 tensors, but 1"):
        tf.einsum("ij,jk->ik", A)
    with pytest.raises(ValueError, match="in none of the operands"):
        tf.einsum("ij->ik", A)
    with pytest.raises(ValueError, match="sizes 3 and 2"):
        tf.einsum("ij,jk->ik", A, A)
    with pytest.raises(ValueError, match="does not fit"):
        tf.einsum("ijk->i", A)
    with pytest.raises(TypeError, match="Invalid keyword"):
        tf.einsum("ij->i", A, speed=9)


@pytest.mark.parametrize(
    ("axes", "a", "b"),
    [
        (1, (2, 3), (3, 4)),
        (2, (2, 3, 4), (3, 4, 5)),
        (0, (2,), (3,)),
        ([[0], [1]], (2, 3), (4, 2)),
        ([[0, 1], [2, 0]], (2, 3, 4), (3, 5, 2)),
        ([-1, 0], (2, 3), (3, 4)),
    ],
    ids=str,
)
def test_tensordot(axes, a, b):
    x, y = normal(*a), normal(*b)
    tensor = tf.tensordot(tf.constant(x), tf.constant(y), axes)
    expected = np.tensordot(x, y, axes)
    np.testing.assert_allclose(run_both(tensor), expected, rtol=1e-10)
    assert tensor.shape.as_list() == list(expected.shape)
    unknown = [tf.placeholder(tf.float64, [None] * len(s)) for s in (a, b)]
    value = run_both(tf.tensordot(*unknown, axes), dict(zip(unknown, (x, y), strict=True)))
    np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("axes", "a", "b"),
    [
        (1, (2, 3), (3, 4)),
        (2, (2, 3, 4), (3, 4, 5)),
        (0, (2,), (3,)),
        ([[0, 1], [2, 0]], (2, 3, 4), (3, 5, 2)),
        ([[-1], [-2]], (2, 3), (4, 3, 5)),
        ([1, 0], (2, 3), (3,)),
    ],
    ids=str,
)
def test_tensordot_of_ranks_and_axes_that_only_the_step_knows(axes, a, b):
    x, y = normal(*a), normal(*b)
    expected = np.tensordot(x, y, axes)
    for shape_a, shape_b in ((None, None), (a, None), (None, b)):
        p, q = tf.placeholder(tf.float64, shape_a), tf.placeholder(tf.float64, shape_b)
        product = tf.tensordot(p, q, axes)
        np.testing.assert_allclose(run_both(product, {p: x, q: y}), expected, rtol=1e-10)
    p, q = tf.placeholder(tf.float64, a), tf.placeholder(tf.float64, b)
    gradients = tf.gradients(tf.tensordot(p, tf.placeholder_with_default(y, None), axes), p)
    known = tf.gradients(tf.tensordot(p, tf.constant(y), axes), p)
    np.testing.assert_allclose(run_both(gradients[0], {p: x}), run_both(known[0], {p: x}))
    if isinstance(axes, list):
        fed = tf.placeholder(tf.int32, np.shape(axes))
        product = tf.tensordot(p, q, fed)
        feeds = {p: x, q: y, fed: axes}
        np.testing.assert_allclose(run_both(product, feeds), expected, rtol=1e-10)
        product = tf.tensordot(p, q, [tf.constant(axes[0]), tf.constant(axes[1])])
        np.testing.assert_allclose(run_both(product, feeds), expected, rtol=1e-10)


def test_tensordot_mistakes():
    with pytest.raises(ValueError, match="out of range"):
        tf.tensordot(A, B, [[5], [0]])
    with pytest.raises(ValueError, match="size 2, but axis 0 of b has 3"):
        tf.tensordot(A, B, [[0], [0]])
    with pytest.raises(ValueError, match="the smaller rank"):
        tf.tensordot(A, B, 3)


# Norms ------------------------------------------------------------------------------------------


def test_norms():
    x = normal(3, 4)
    t = tf.constant(x)
    pairs = [
        (tf.norm(t), np.linalg.norm(x)),
        (tf.norm(t, 1), np.abs(x).sum()),
        (tf.norm(t, np.inf), np.abs(x).max()),
        (tf.norm(t, 3, axis=0), np.linalg.norm(x, 3, axis=0)),
        (tf.norm(t, axis=1, keepdims=True), np.linalg.norm(x, axis=1, keepdims=True)),
        (tf.norm(t, "fro", axis=[0, 1]), np.linalg.norm(x, "fro")),
        (tf.norm(t, 1, axis=[0, 1]), np.linalg.norm(x, 1)),
        (tf.norm(t, np.inf, axis=[0, 1]), np.linalg.norm(x, np.inf)),
        (tf.trace(t[:3, :3]), np.trace(x[:3, :3])),
        (tf.cross(t[:, :3], t[:, 1:]), np.cross(x[:, :3], x[:, 1:])),
    ]
    for value, (_, want) in zip(run_both([p[0] for p in pairs]), pairs, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-10)
    for bad in ({"ord": -1}, {"ord": "nuclear"}, {"axis": [0, 1, 2]}, {"ord": 2, "axis": [0, 1]}):
        with pytest.raises(ValueError, match="axis|ord"):
            tf.norm(t, **bad)
    assert_derivatives(lambda a, b: tf.square(tf.cross(a, b)), x[:, :3], x[:, 1:])
