"""The QR decomposition."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import session


@pytest.mark.parametrize("level", [-1, 1], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.float16])
@pytest.mark.parametrize("full", [False, True])
def test_it_is_a_factorization(shape, kind, full, level):
    x = np.random.default_rng(1).normal(size=shape).astype(kind)
    if np.dtype(kind).kind == "c":
        x = x + 1j * x[..., ::-1]
    q, r = tf.qr(tf.constant(x), full_matrices=full)
    with session(level) as sess:
        q_value, r_value = sess.run([q, r])
    assert q_value.dtype == r_value.dtype == x.dtype
    assert q_value.shape == tuple(q.shape.as_list()) and r_value.shape == tuple(r.shape.as_list())
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    q_value, r_value = q_value.astype(wide), r_value.astype(wide)
    tolerance = 1e-2 if kind is np.float16 else 1e-5
    np.testing.assert_allclose(q_value @ r_value, x, atol=tolerance)
    unit = np.conj(np.swapaxes(q_value, -1, -2)) @ q_value
    np.testing.assert_allclose(
        unit, np.broadcast_to(np.eye(unit.shape[-1]), unit.shape), atol=tolerance
    )
    np.testing.assert_allclose(r_value, np.triu(r_value), atol=tolerance)


def test_only_matrices():
    with pytest.raises(ValueError, match="matrix"):
        tf.qr(tf.constant([1.0]))
