"""Contraction of two tensors over chosen axes, by way of one matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.ops.matmul import matmul


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products of ``a`` and ``b`` over ``axes``.

    ``axes`` is a number n (the last n of ``a`` with the first n of ``b``) or a pair of lists.

    Example:
        >>> tf.tensordot(a, b, 1)                 # the matrix product
        >>> tf.tensordot(a, b, [[0, 1], [2, 0]])  # axes 0 and 1 of a with 2 and 0 of b
    """
    with name_scope(name, "Tensordot", [a, b]):
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b", dtype_hint=a.dtype.base_dtype)
        if a.dims is None or b.dims is None or not _are_known(axes):
            return _of_unknown_rank(a, b, axes)
        axes_a, axes_b = _axes(axes, len(a.dims), len(b.dims))
        for i, j in zip(axes_a, axes_b, strict=True):
            if a.dims[i] is not None and b.dims[j] is not None and a.dims[i] != b.dims[j]:
                raise ValueError(
                    f"Axis {i} of a has size {a.dims[i]}, but axis {j} of b has {b.dims[j]}"
                )
        rows, free_a = _as_matrix(a, axes_a, contracted_first=False)
        columns, free_b = _as_matrix(b, axes_b, contracted_first=True)
        product = matmul(rows, columns)
        static = tuple(a.dims[i] for i in free_a) + tuple(b.dims[i] for i in free_b)
        output = get_op_def("Reshape")(product, _joined_shape(a, free_a, b, free_b))
        output.set_shape(static)
        return output


def _axes(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, Tensor):
        axes = constant_value(axes)
        axes = axes.tolist() if axes is not None else None
    elif isinstance(axes, list | tuple):
        axes = [constant_value(part) if isinstance(part, Tensor) else part for part in axes]
    if isinstance(axes, int | np.integer):
        if not 0 <= axes <= min(rank_a, rank_b):
            raise ValueError(
                f"axes must be between 0 and {min(rank_a, rank_b)}, the smaller rank, not {axes}"
            )
        return list(range(rank_a - int(axes), rank_a)), list(range(int(axes)))
    pair = [np.atleast_1d(np.asarray(part)).tolist() for part in axes]
    if len(pair) != 2 or len(pair[0]) != len(pair[1]):
        raise ValueError(f"axes must be a number or two lists of the same length, not {axes}")
    chosen = []
    for part, rank in zip(pair, (rank_a, rank_b), strict=True):
        for axis in part:
            if not -rank <= axis < rank:
                raise ValueError(f"Axis {axis} is out of range for a tensor of rank {rank}")
        chosen.append([axis % rank for axis in part])
    return chosen[0], chosen[1]


def _as_matrix(x: Tensor, axes: list[int], contracted_first: bool) -> tuple[Tensor, list[int]]:
    """``x`` as a matrix, contracted axes on one side and free ones on the other."""
    dims = x.dims or ()
    free = [i for i in range(len(dims)) if i not in axes]
    order = [*axes, *free] if contracted_first else [*free, *axes]
    if order != list(range(len(dims))):
        x = get_op_def("Transpose")(x, constant_tensor(order, dtypes.int32))
    groups = (axes, free) if contracted_first else (free, axes)
    sizes = [_product([dims[i] for i in group]) for group in groups]
    if None not in sizes:
        shape: Any = constant_tensor([int(s or 0) for s in sizes], dtypes.int32)
    elif sizes.count(None) == 1 and 0 not in sizes:
        shape = constant_tensor([-1 if s is None else s for s in sizes], dtypes.int32)
    else:
        actual = get_op_def("Shape")(x)
        split = len(groups[0])
        total = get_op_def("Prod")
        zero = constant_tensor([0], dtypes.int32)
        shape = get_op_def("Pack")([total(actual[:split], zero), total(actual[split:], zero)])
    return get_op_def("Reshape")(x, shape), free


def _product(sizes: list[int | None]) -> int | None:
    total = 1
    for size in sizes:
        if size is None:
            return None
        total *= size
    return total


def _joined_shape(a: Tensor, free_a: list[int], b: Tensor, free_b: list[int]) -> Tensor:
    sizes = [(a.dims or ())[i] for i in free_a] + [(b.dims or ())[i] for i in free_b]
    if None not in sizes:
        return constant_tensor([int(s or 0) for s in sizes] or np.zeros(0, np.int32), dtypes.int32)
    if sizes.count(None) == 1 and 0 not in sizes:
        return constant_tensor([-1 if s is None else s for s in sizes], dtypes.int32)
    parts = []
    for tensor, free in ((a, free_a), (b, free_b)):
        shape = get_op_def("Shape")(tensor)
        parts += [shape[i] for i in free]
    return get_op_def("Pack")(parts)


# Ranks, or axes, that only the step knows ---------------------------------------------------------


def _are_known(axes: Any) -> bool:
    """True when the values of the axes are known while the graph is built."""
    parts = axes if isinstance(axes, list | tuple) else [axes]
    return all(not isinstance(p, Tensor) or constant_value(p) is not None for p in parts)


def _of_unknown_rank(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    rank_a, rank_b = (get_op_def("Rank")(x) for x in (a, b))
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError(f"axes must be at least 0, not {axes}")
        chosen = [_range(rank_a - int(axes), rank_a), _range(0, int(axes))]
    else:
        given = [axes[0], axes[1]]
        chosen = [_from_the_start(axis, r) for axis, r in zip(given, (rank_a, rank_b), strict=True)]
    rows, kept_a = _as_matrix_of_unknown_rank(a, rank_a, chosen[0], contracted_first=False)
    columns, kept_b = _as_matrix_of_unknown_rank(b, rank_b, chosen[1], contracted_first=True)
    return get_op_def("Reshape")(matmul(rows, columns), _joined(kept_a, kept_b))


def _range(start: Any, limit: Any) -> Tensor:
    return get_op_def("Range")(start, limit, 1)


def _joined(*parts: Tensor) -> Tensor:
    return get_op_def("ConcatV2")(list(parts), 0)


def _from_the_start(axes: Any, rank: Tensor) -> Tensor:
    """The axes as a vector, without negative ones."""
    given = get_op_def("Reshape")(convert_to_tensor(axes, dtypes.int32), [-1])
    return get_op_def("Select")(given < 0, given + rank, given)


def _as_matrix_of_unknown_rank(
    x: Tensor, rank: Tensor, axes: Tensor, contracted_first: bool
) -> tuple[Tensor, Tensor]:
    """``x`` as a matrix, contracted axes on one side and free ones on the other, whose sizes."""
    free, _ = get_op_def("ListDiff")(_range(0, rank), axes)
    groups = (axes, free) if contracted_first else (free, axes)
    shape = get_op_def("Shape")(x)
    sizes = [get_op_def("GatherV2")(shape, group, 0) for group in groups]
    zero = constant_tensor([0], dtypes.int32)
    sides = get_op_def("Pack")([get_op_def("Prod")(size, zero) for size in sizes])
    ordered = get_op_def("Transpose")(x, _joined(*groups))
    return get_op_def("Reshape")(ordered, sides), sizes[1 if contracted_first else 0]
