"""``SparseMatMul``: a product of dense matrices of which many elements may be zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.casting import cast
from runnel.ops.matmul import matmul, multiply_matrices, product_dims

_TYPE = "{float32, bfloat16} = DT_FLOAT"
sparse_matmul_op = register_op(
    "SparseMatMul",
    inputs="a: Ta, b: Tb",
    outputs="product: float32",
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "a_is_sparse: bool = false",
        "b_is_sparse: bool = false",
        f"Ta: {_TYPE}",
        f"Tb: {_TYPE}",
    ],
)


@sparse_matmul_op.shape
def _(a, b, *, transpose_a, transpose_b):
    return product_dims(a, b, transpose_a, transpose_b)


@sparse_matmul_op.kernel
def _(xp, a, b, *, transpose_a, transpose_b):
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    return multiply_matrices(xp, a.astype(np.float32), b.astype(np.float32))


@sparse_matmul_op.gradient
def _(op, grad):
    a, b = (cast(x, float32) for x in op.inputs)
    turn_a, turn_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    if turn_a:
        of_a = matmul(b, grad, transpose_a=turn_b, transpose_b=True)
    else:
        of_a = matmul(grad, b, transpose_b=not turn_b)
    if turn_b:
        of_b = matmul(grad, a, transpose_a=True, transpose_b=turn_a)
    else:
        of_b = matmul(a, grad, transpose_a=not turn_a)
    return [cast(of_a, op.inputs[0].dtype), cast(of_b, op.inputs[1].dtype)]


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two dense matrices of float32 or bfloat16, in float32.

    ``*_is_sparse`` say that many elements are zero: hints that change nothing in the result.

    Example:
        >>> tf.sparse_matmul([[0.0, 2.0]], [[3.0], [4.0]], a_is_sparse=True)  # [[8.0]]
    """
    return sparse_matmul_op(
        convert_to_tensor(a),
        convert_to_tensor(b),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
        name=name,
    )
