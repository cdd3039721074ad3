"""Arithmetic on sparse tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.fill import ones
from runnel.ops.gather import gather_nd
from runnel.ops.joining import concat
from runnel.ops.scatter_nd import scatter_nd
from runnel.ops.scatter_update import combine_at
from runnel.ops.sparse.coordinates import (
    NUMBERS,
    REALS,
    as_sparse,
    check_values,
    matrix_dims,
    new_group,
    require_sparse,
    row_order,
    sparse_op,
)

_TWO = (
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
)

add_op = sparse_op(
    "SparseAdd",
    f"{_TWO}, thresh: Treal",
    "sum_indices: int64, sum_values: T, sum_shape: int64",
    [f"T: {NUMBERS}", f"Treal: {REALS}"],
    differentiable=True,
)
add_grad_op = sparse_op(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
    "a_val_grad: T, b_val_grad: T",
    f"T: {NUMBERS}",
)
dense_add_op = register_op(
    "SparseTensorDenseAdd",
    inputs="a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
    outputs="output: T",
    attrs=[f"T: {NUMBERS}", "Tindices: {int32, int64}"],
    static_inputs=("a_shape",),
)


# Two sparse tensors -----------------------------------------------------------------------------


def _combined(
    a: tuple[np.ndarray, np.ndarray, np.ndarray],
    b: tuple[np.ndarray, np.ndarray, np.ndarray],
    ufunc: np.ufunc,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coordinates that either has, the values there, and whether both have one.

    Where one has none it is zero.
    """
    require_sparse(*a, "The first tensor")
    require_sparse(*b, "The second tensor")
    if a[2].tolist() != b[2].tolist():
        raise InvalidArgumentError(
            None, None, f"The shapes {a[2].tolist()} and {b[2].tolist()} of the tensors differ"
        )
    indices = np.concatenate([a[0], b[0]])
    zeros_a, zeros_b = np.zeros_like(a[1]), np.zeros_like(b[1])
    ours, theirs = np.concatenate([a[1], zeros_b]), np.concatenate([zeros_a, b[1]])
    order = row_order(indices)
    indices, ours, theirs = indices[order], ours[order], theirs[order]
    starts = np.flatnonzero(new_group(indices))
    if not len(starts):
        return indices, ours, starts == 0
    left = np.add.reduceat(ours, starts, dtype=ours.dtype)
    right = np.add.reduceat(theirs, starts, dtype=ours.dtype)
    in_both = np.diff(starts, append=len(indices)) > 1
    return indices[starts], ufunc(left, right), in_both


def _two_dims(a_indices: Tensor, a_shape: Tensor) -> list[Any]:
    return [matrix_dims(a_indices, a_shape), (None,)]


@add_op.shape
def _(a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh):
    return [*_two_dims(a_indices, a_shape), a_shape.dims]


@add_op.kernel
def _(xp, a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh):
    indices, values, in_both = _combined(
        (a_indices, a_values, a_shape), (b_indices, b_values, b_shape), np.add
    )
    kept = ~in_both | (np.abs(values) >= thresh)
    return indices[kept], values[kept], a_shape.copy()


@add_grad_op.shape
def _(grad, a_indices, b_indices, sum_indices):
    return [(None if x.dims is None else x.dims[0],) for x in (a_indices, b_indices)]


@add_grad_op.kernel
def _(xp, grad, a_indices, b_indices, sum_indices):
    if grad.shape != sum_indices.shape[:1]:
        raise InvalidArgumentError(
            None, None, f"There are {len(sum_indices)} sums, but gradients of shape {grad.shape}"
        )
    place = {tuple(row): i for i, row in enumerate(sum_indices.tolist())}
    found = []
    for indices in (a_indices, b_indices):
        at = np.array([place.get(tuple(row), -1) for row in indices.tolist()], np.int64)
        padded = np.concatenate([grad, np.zeros(1, grad.dtype)])  # zero for what is not there
        found.append(padded[at])
    return tuple(found)


@add_op.gradient
def _(op, indices_grad, values_grad, shape_grad):
    a, b = add_grad_op(values_grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, a, None, None, b, None, None]


def _extremum(name: str, types: str, ufunc: np.ufunc) -> OpDef:
    op_def = sparse_op(
        f"SparseSparse{name}", _TWO, "output_indices: int64, output_values: T", f"T: {types}"
    )

    @op_def.shape
    def _(a_indices, a_values, a_shape, b_indices, b_values, b_shape):
        return _two_dims(a_indices, a_shape)

    @op_def.kernel
    def _(xp, a_indices, a_values, a_shape, b_indices, b_values, b_shape):
        a, b = (a_indices, a_values, a_shape), (b_indices, b_values, b_shape)
        return _combined(a, b, ufunc)[:2]

    return op_def


maximum_op = _extremum("Maximum", REALS, np.maximum)
minimum_op = _extremum("Minimum", NUMBERS, np.minimum)


# A sparse and a dense tensor --------------------------------------------------------------------


@dense_add_op.shape
def _(indices, values, shape, b):
    return b.dims


@dense_add_op.kernel
def _(xp, indices, values, shape, b, *, check):
    check_values(indices, values, b.ndim, check)
    check(
        tuple(np.asarray(shape).tolist()) == b.shape,
        lambda: f"The shapes {np.asarray(shape).tolist()} and {list(b.shape)} must be the same",
    )
    inside = xp.all((indices >= 0) & (indices < xp.asarray(np.array(b.shape, np.int64))))
    check(inside, lambda: f"An index is out of bounds of {b.shape}: {np.asarray(indices).tolist()}")
    return combine_at(xp, b, tuple(indices[:, d] for d in range(b.ndim)), values, "add")


@dense_add_op.gradient
def _(op, grad):
    return [None, gather_nd(grad, op.inputs[0]), None, grad]


_PARTS = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T"


def _elementwise(name: str, compute: Callable[[Any, Any, Any], Any]) -> OpDef:
    op_def = register_op(
        f"SparseDenseCwise{name}",
        inputs=_PARTS,
        outputs="output: T",
        attrs=f"T: {NUMBERS}",
        static_inputs=("sp_shape",),
        differentiable=name != "Add",
    )

    @op_def.shape
    def _(indices, values, shape, dense):
        return values.dims

    @op_def.kernel
    def _(xp, indices, values, shape, dense, *, check):
        dims = tuple(np.asarray(shape).tolist())
        check_values(indices, values, len(dims), check)
        fits = len(dims) >= dense.ndim and all(
            d in (1, s) for d, s in zip(dense.shape[::-1], dims[::-1], strict=False)
        )
        check(
            fits,
            lambda: (
                f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                f"shapes: [{list(dims)}] vs. [{list(dense.shape)}]"
            ),
        )
        check(
            xp.all((indices >= 0) & (indices < xp.asarray(np.array(dims, np.int64)))),
            lambda: f"An index is out of bounds of {list(dims)}: {np.asarray(indices).tolist()}",
        )
        columns = [
            indices[:, len(dims) - dense.ndim + d] if n != 1 else indices[:, 0] * 0
            for d, n in enumerate(dense.shape)
        ]
        found = dense[tuple(columns)] if columns else dense
        return compute(xp, values, found)

    return op_def


def _divided(xp: Any, values: Any, divisors: Any) -> Any:
    if values.dtype.kind in "iu":
        quotient = xp.abs(values) // xp.abs(divisors)
        return (quotient * xp.sign(values) * xp.sign(divisors)).astype(values.dtype)
    return values / divisors


cwise_add_op = _elementwise("Add", lambda xp, values, dense: values + dense)
cwise_mul_op = _elementwise("Mul", lambda xp, values, dense: values * dense)
cwise_div_op = _elementwise("Div", _divided)


def _dense_at(op: Any) -> tuple[Tensor, Tensor]:
    """Where each element of the sparse tensor finds its partner, and the partner."""
    indices, _, shape, dense = op.inputs
    dims = cast(shape_of(dense), shape.dtype)
    added = get_op_def("Size")(shape) - get_op_def("Size")(dims)
    padded = concat([ones(get_op_def("ExpandDims")(added, 0), shape.dtype), dims], 0)
    scaled = (indices // (shape // padded))[:, added:]
    return scaled, gather_nd(dense, scaled)


@cwise_mul_op.gradient
def _(op, grad):
    places, partner = _dense_at(op)
    dense = op.inputs[3]
    back = scatter_nd(places, grad * op.inputs[1], cast(shape_of(dense), places.dtype))
    return [None, grad * partner, None, back]


@cwise_div_op.gradient
def _(op, grad):
    places, partner = _dense_at(op)
    dense, values = op.inputs[3], op.inputs[1]
    share = grad * (-values / get_op_def("Square")(partner))
    back = scatter_nd(places, share, cast(shape_of(dense), places.dtype))
    return [None, grad / partner, None, back]


# Functions --------------------------------------------------------------------------------------


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two tensors, of which one at least is sparse.

    Of two sparse ones it is sparse, without sums whose magnitude is below ``threshold``; else it is
    dense.

    Example:
        >>> tf.sparse.add(tf.SparseTensor([[1]], [5.0], [3]), [1.0, 1.0, 1.0])  # [1, 6, 1]
    """
    limit = thresh if threshold is None else threshold
    limit = 0 if limit is None else limit
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if is_sparse(a) and is_sparse(b):
        one, other = as_sparse(a), as_sparse(b)
        real = one.values.dtype.base_dtype.real_dtype
        parts = add_op(
            one.indices,
            one.values,
            one.dense_shape,
            other.indices,
            other.values,
            other.dense_shape,
            convert_to_tensor(limit, real, name="thresh"),
        )
        return SparseTensor(*parts)
    sparse, dense = (as_sparse(a), b) if is_sparse(a) else (as_sparse(b), a)
    return dense_add_op(sparse.indices, sparse.values, sparse.dense_shape, dense)


def _of_both(op_def: OpDef, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    a, b = as_sparse(sp_a, "sp_a"), as_sparse(sp_b, "sp_b")
    indices, values = op_def(
        a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=name
    )
    return SparseTensor(indices, values, a.dense_shape)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of each two elements; one that is not there is zero."""
    return _of_both(maximum_op, sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of each two elements; one that is not there is zero."""
    return _of_both(minimum_op, sp_a, sp_b, name)


def multiplied(sparse: SparseTensor, dense: Any) -> SparseTensor:
    """The elements that are there, each times the one of ``dense`` at its place."""
    return _with_dense(cwise_mul_op, sparse, dense)


def divided(sparse: SparseTensor, dense: Any) -> SparseTensor:
    """The elements that are there, each divided by the one of ``dense`` at its place."""
    return _with_dense(cwise_div_op, sparse, dense)


def _with_dense(op_def: OpDef, sparse: SparseTensor, dense: Any) -> SparseTensor:
    other = convert_to_tensor(dense, sparse.values.dtype.base_dtype)
    values = op_def(sparse.indices, sparse.values, sparse.dense_shape, other)
    return SparseTensor(sparse.indices, values, sparse.dense_shape)
