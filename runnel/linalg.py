"""``tf.linalg``: linear algebra."""

from runnel.matrix_exponential import matrix_exponential as expm
from runnel.ops.band import diag as tensor_diag
from runnel.ops.band import diag_part as tensor_diag_part
from runnel.ops.band import matrix_band_part as band_part
from runnel.ops.clipping import global_norm
from runnel.ops.decompositions import adjoint, svd
from runnel.ops.decompositions import self_adjoint_eig as eigh
from runnel.ops.decompositions import self_adjoint_eigvals as eigvalsh
from runnel.ops.diagonal import eye
from runnel.ops.diagonal import matrix_diag as diag
from runnel.ops.diagonal import matrix_diag_part as diag_part
from runnel.ops.diagonal import matrix_set_diag as set_diag
from runnel.ops.einsum import einsum
from runnel.ops.l2 import l2_normalize
from runnel.ops.linear_algebra import cholesky, slogdet
from runnel.ops.linear_algebra import matrix_determinant as det
from runnel.ops.linear_algebra import matrix_inverse as inv
from runnel.ops.linear_algebra import matrix_solve as solve
from runnel.ops.linear_algebra import matrix_triangular_solve as triangular_solve
from runnel.ops.lu import lu
from runnel.ops.matmul import matmul, matvec
from runnel.ops.matrix_functions import (
    cholesky_solve,
    logdet,
    matrix_rank,
    normalize,
    pinv,
)
from runnel.ops.matrix_functions import matrix_solve_ls as lstsq
from runnel.ops.matrix_roots import matrix_logarithm as logm
from runnel.ops.matrix_roots import matrix_square_root as sqrtm
from runnel.ops.norms import cross, norm, trace
from runnel.ops.qr import qr
from runnel.ops.tensordot import tensordot
from runnel.ops.transposition import matrix_transpose
from runnel.ops.transposition import matrix_transpose as transpose
from runnel.ops.tridiagonal import tridiagonal_matmul, tridiagonal_solve

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "eye",
    "expm",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "transpose",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]


def __dir__() -> list[str]:
    return __all__
