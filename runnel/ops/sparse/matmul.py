"""The product of a sparse and a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.combined_rows import combined_natively
from runnel.ops.gather import gather
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.scatter_update import combine_at
from runnel.ops.sparse.coordinates import as_sparse, check_values
from runnel.ops.transposition import transpose

sparse_matmul_op = register_op(
    "SparseTensorDenseMatMul",
    inputs="a_indices: Tindices, a_values: T, a_shape: int64, b: T",
    outputs="product: T",
    attrs=[
        "T: type",
        "Tindices: {int32, int64} = DT_INT64",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
    ],
    static_inputs=("a_shape",),
)


@sparse_matmul_op.shape
def _(indices, values, shape, b, *, adjoint_a, adjoint_b):
    if b.dims is not None and len(b.dims) != 2:
        raise ValueError(f"b must be a matrix, not of shape {b.shape}")
    dims = constant_value_as_dims(shape)
    if dims is not None and len(dims) != 2:
        raise ValueError(f"a must be a matrix, not of shape {list(dims)}")
    outer, inner = (None, None) if dims is None else (dims[::-1] if adjoint_a else dims)
    b_inner, columns = (None, None) if b.dims is None else (b.dims[::-1] if adjoint_b else b.dims)
    if inner is not None and b_inner is not None and inner != b_inner:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {b_inner}")
    return (outer, columns)


@sparse_matmul_op.kernel
def _(xp, indices, values, shape, b, *, adjoint_a, adjoint_b, check):
    dims = np.asarray(shape).tolist()
    check_values(indices, values, 2, check)
    outer, inner = dims[::-1] if adjoint_a else dims
    if adjoint_b:
        b = xp.conj(b.T) if b.dtype.kind == "c" else b.T
    check(
        inner == b.shape[0],
        lambda: (
            f"Cannot multiply A and B because inner dimension does not match: {inner} vs. "
            f"{b.shape[0]}. Did you forget a transpose?"
        ),
    )
    rows, columns = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
    check(
        xp.all((rows >= 0) & (rows < outer) & (columns >= 0) & (columns < inner)),
        lambda: f"An index of a is out of bounds of {dims}: {np.asarray(indices).tolist()}",
    )
    weights = xp.conj(values) if adjoint_a and values.dtype.kind == "c" else values
    product = xp.zeros((outer, b.shape[1]), b.dtype)
    if xp is np and combined_natively(np.add, product, rows, b, sources=columns, weights=weights):
        return product
    shares = weights[:, None] * b[columns]
    return combine_at(xp, product, (rows,), shares, "add")


@sparse_matmul_op.gradient
def _(op, grad):
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    back = sparse_matmul_op(indices, values, shape, grad, adjoint_a=not adjoint_a)
    conj = get_op_def("Conj") if grad.dtype.is_complex else (lambda x: x)
    rows, columns = indices[:, 0], indices[:, 1]
    wide = transpose(b) if adjoint_b else conj(b)  # twice conjugate is not
    of_grad = gather(grad, columns if adjoint_a else rows)
    of_b = gather(wide, rows if adjoint_a else columns)
    weights = reduce_sum(of_grad * of_b, 1)
    return [
        None,
        conj(weights) if adjoint_a else weights,
        None,
        conj(transpose(back)) if adjoint_b else back,
    ]


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one, in either order.

    Example:
        >>> tf.sparse.matmul(tf.SparseTensor([[0, 1]], [2.0], [2, 2]), [[1.0], [3.0]])  # [[6], [0]]
    """
    if is_sparse(b) and not is_sparse(sp_a):
        # a b = (b^H a^H)^H
        product = sparse_tensor_dense_matmul(
            b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a
        )
        turned = transpose(product)
        return get_op_def("Conj")(turned) if turned.dtype.is_complex else turned
    sparse: SparseTensor = as_sparse(sp_a, "sp_a")
    return sparse_matmul_op(
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        b,
        adjoint_a=adjoint_a,
        adjoint_b=adjoint_b,
        name=name,
    )
