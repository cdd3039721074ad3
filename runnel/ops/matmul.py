"""Matrix products: MatMul, batched with broadcasting, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor, existing_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shapes import Dims, broadcast_dims, format_dims
from runnel.ops.arithmetic import COMPLEX, FLOATS, conjugate
from runnel.ops.blas_threads import multiply
from runnel.ops.broadcast_gradient import unbroadcast_batch
from runnel.ops.half_precision import narrow, widen


def multiply_matrices(xp: Any, a: Any, b: Any) -> Any:
    """``a @ b`` over the last two axes; NumPy multiplies 16-bit floats in float32."""
    if xp is not np:
        return xp.matmul(a, b)
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous and a.size:
        # One product: NumPy would make one for each matrix.
        rows = multiply_matrices(np, a.reshape(-1, a.shape[-1]), b)
        return rows.reshape(*a.shape[:-1], b.shape[-1])
    if a.dtype.char in "fd":
        return multiply(np.matmul, a, b)
    return narrow(multiply(np.matmul, widen(a), widen(b)), a.dtype)


matmul_op = register_op(
    "MatMul",
    inputs="a: T, b: T",
    outputs="product: T",
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        f"T: {{{FLOATS}, int32, int64, uint8, uint16, uint32, uint64, {COMPLEX}}}",
        "grad_a: bool = false",
        "grad_b: bool = false",
    ],
)


def product_dims(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Dims:
    """The static shape of a product of two matrices."""
    rows, inner_a = _sides(a.dims, transpose_a)
    inner_b, columns = _sides(b.dims, transpose_b)
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise ValueError(f"Dimensions must be equal, but are {inner_a} and {inner_b}")
    return rows, columns


@matmul_op.shape
def _(a, b, *, transpose_a, transpose_b):
    return product_dims(a, b, transpose_a, transpose_b)


def _sides(dims: Dims, transposed: bool) -> tuple[int | None, int | None]:
    """The rows and columns of an operand of a product of matrices."""
    if dims is None:
        return None, None
    if len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}: {format_dims(dims)}")
    return (dims[1], dims[0]) if transposed else (dims[0], dims[1])


@matmul_op.kernel
def _(xp, a, b, *, transpose_a, transpose_b, platform):
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"MatMul takes matrices, not shapes {list(a.shape)} and {list(b.shape)}")
    a_rows = a.T if transpose_a else a
    b_rows = b.T if transpose_b else b
    if a_rows.shape[1] != b_rows.shape[0]:
        raise ValueError(
            f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}"
        )
    if xp is not np and platform == "cpu" and transpose_b and _few_rows_by_many(a_rows, b):
        return _few_rows_by_transposed(xp, a_rows, b)
    return multiply_matrices(xp, a_rows, b_rows)


_LANES = 16


def _few_rows_by_many(a: Any, b: Any) -> bool:
    """Whether ``b`` is what a product spends its time on reading: it fits no cache."""
    few = 1 < a.shape[0] < 2 * _LANES and a.shape[0] % _LANES
    return bool(few) and b.size >= 1 << 22 and b.dtype == np.float32


def _few_rows_by_transposed(xp: Any, a: Any, b: Any) -> Any:
    """``a @ b.T``, the gradient of a small batch.

    On a CPU XLA rearranges all of ``b`` for it. In ``b @ a.T`` it reads ``b`` as it lies, two to
    three times as fast; rows of zeros keep it from turning the one into the other.
    """
    rows = a.shape[0]
    filled = xp.pad(a, ((0, -rows % _LANES), (0, 0)))
    return (b @ filled.T)[:, :rows].T


@matmul_op.gradient
def _(op, grad):
    a, b = (conjugate(x) for x in op.inputs)
    transpose_a, transpose_b = op.attrs["transpose_a"], op.attrs["transpose_b"]
    if not transpose_a and not transpose_b:
        grad_a = matmul_op(grad, b, transpose_b=True)
        grad_b = matmul_op(a, grad, transpose_a=True)
    elif not transpose_a:
        grad_a = matmul_op(grad, b)
        grad_b = matmul_op(grad, a, transpose_a=True)
    elif not transpose_b:
        grad_a = matmul_op(b, grad, transpose_b=True)
        grad_b = matmul_op(a, grad)
    else:
        grad_a = matmul_op(b, grad, transpose_a=True, transpose_b=True)
        grad_b = matmul_op(grad, a, transpose_a=True, transpose_b=True)
    return [grad_a, grad_b]


# Batches --------------------------------------------------------------------------------------


def _register_batched(name: str, types: str) -> OpDef:
    op_def = register_op(
        name,
        inputs="x: T, y: T",
        outputs="output: T",
        attrs=[
            f"T: {{{types}}}",
            "adj_x: bool = false",
            "adj_y: bool = false",
            "grad_x: bool = false",
            "grad_y: bool = false",
        ],
    )

    @op_def.shape
    def _(x, y, *, adj_x, adj_y):
        return _batched_dims(x.dims, y.dims, adj_x, adj_y)

    @op_def.kernel
    def _(xp, x, y, *, adj_x, adj_y):
        if x.ndim < 2 or y.ndim < 2:
            raise ValueError(
                f"{name} takes stacks of matrices, not {list(x.shape)} and {list(y.shape)}"
            )
        left, right = _adjoint(xp, x, adj_x), _adjoint(xp, y, adj_y)
        if left.shape[-1] != right.shape[-2]:
            raise ValueError(
                f"Matrix size-incompatible: In[0]: {list(x.shape)}, In[1]: {list(y.shape)}"
            )
        return multiply_matrices(xp, left, right)

    op_def.gradient(_batched_gradient)
    return op_def


def _adjoint(xp: Any, x: Any, wanted: bool) -> Any:
    if not wanted:
        return x
    flipped = xp.swapaxes(x, -1, -2)
    return xp.conjugate(flipped) if x.dtype.kind == "c" else flipped


def _batched_dims(a: Dims, b: Dims, adj_a: bool, adj_b: bool) -> Dims:
    for dims in (a, b):
        if dims is not None and len(dims) < 2:
            raise ValueError(f"Shape must be at least rank 2 but is {format_dims(dims)}")
    if a is None or b is None:
        return None
    rows, inner_a = _sides(a[-2:], adj_a)
    inner_b, columns = _sides(b[-2:], adj_b)
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise ValueError(f"Dimensions must be equal, but are {inner_a} and {inner_b}")
    batch = broadcast_dims(a[:-2], b[:-2])
    return None if batch is None else (*batch, rows, columns)


def _batched_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    adj_x, adj_y = op.attrs["adj_x"], op.attrs["adj_y"]
    multiply: OpDef = op.op_def
    if not adj_x and not adj_y:
        grad_x = multiply(grad, y, adj_y=True)
        grad_y = multiply(x, grad, adj_x=True)
    elif not adj_x:
        grad_x = multiply(grad, y)
        grad_y = multiply(grad, x, adj_x=True)
    elif not adj_y:
        grad_x = multiply(y, grad, adj_y=True)
        grad_y = multiply(x, grad)
    else:
        grad_x = multiply(y, grad, adj_x=True, adj_y=True)
        grad_y = multiply(grad, x, adj_x=True, adj_y=True)
    return unbroadcast_batch(x, y, grad_x, grad_y)


batch_matmul_op = _register_batched(
    "BatchMatMulV2",
    f"{FLOATS}, int16, int32, int64, uint8, uint16, uint32, uint64, {COMPLEX}",
)
batch_matmul_v1_op = _register_batched("BatchMatMul", f"{FLOATS}, int32, int64, {COMPLEX}")


# Functions ------------------------------------------------------------------------------------


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product ``a @ b``; with more than two dimensions, of stacks of matrices.

    The outer dimensions of stacks are broadcast. ``transpose_*`` and ``adjoint_*`` (the
    conjugate transpose) turn an operand first; ``*_is_sparse`` are hints that change nothing
    in the result, and are ignored.

    Example:
        >>> tf.matmul([[1.0, 2.0]], [[3.0], [4.0]])
        <tf.Tensor 'MatMul:0' shape=(1, 1) dtype=float32>
    """
    del a_is_sparse, b_is_sparse
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("Only one of transpose and adjoint can be True for the same operand.")
    x, y = existing_tensor(a), existing_tensor(b)
    if x is not None and y is not None and not (adjoint_a or adjoint_b):
        if x.dims is not None and y.dims is not None and len(x.dims) == len(y.dims) == 2:
            return matmul_op(x, y, transpose_a=transpose_a, transpose_b=transpose_b, name=name)
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, dtype_hint=a.dtype.base_dtype, name="b")
        if a.dims is None or b.dims is None or len(a.dims) > 2 or len(b.dims) > 2:
            # The batched op only has the adjoint: a transpose is the adjoint of the conjugate.
            x = conjugate(a) if transpose_a else a
            y = conjugate(b) if transpose_b else b
            return batch_matmul_op(
                x, y, adj_x=transpose_a or adjoint_a, adj_y=transpose_b or adjoint_b, name=scope
            )
        x = conjugate(a) if adjoint_a else a
        y = conjugate(b) if adjoint_b else b
        return matmul_op(
            x,
            y,
            transpose_a=transpose_a or adjoint_a,
            transpose_b=transpose_b or adjoint_b,
            name=scope,
        )


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of (stacks of) matrices and vectors.

    Example:
        >>> tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])  # [3., 7.]
    """
    with name_scope(name, "MatVec", [a, b]):
        vector = convert_to_tensor(b, name="b")
        column = get_op_def("ExpandDims")(vector, -1)
        output = matmul(
            a,
            column,
            transpose_a=transpose_a,
            adjoint_a=adjoint_a,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
        return get_op_def("Squeeze")(output, squeeze_dims=[-1])
