"""Python's operators on sparse tensors: ``sparse * dense`` and ``sparse / dense``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.reduce_functions import reduce_prod


def _operator(name: str) -> Callable[[SparseTensor, Any], SparseTensor]:
    def operate(sparse: SparseTensor, dense: Any) -> SparseTensor:
        from runnel.ops.sparse import arithmetic  # which few programs need

        return getattr(arithmetic, name)(sparse, dense)

    return operate


def add_operators() -> None:
    """Gives sparse tensors their operators."""
    for method, function in (
        ("__mul__", "multiplied"),
        ("__rmul__", "multiplied"),
        ("__truediv__", "divided"),
        ("__div__", "divided"),
    ):
        setattr(SparseTensor, method, _operator(function))


# Names of ``tf`` whose functions take a sparse tensor too, and keep 0 where nothing is.
UNARY = ("abs", "erf", "negative", "sign", "sqrt", "square", "tanh")


def of_values(function: Callable[..., Any]) -> Callable[..., SparseTensor]:
    """The form of an elementwise function for a sparse tensor."""

    def of_sparse(sparse: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        values = function(sparse.values, *args, **kwargs)
        return SparseTensor(sparse.indices, values, sparse.dense_shape)

    return of_sparse


def _shape(sparse: SparseTensor, name: str | None = None, out_type: Any = int32) -> Tensor:
    return cast(sparse.dense_shape, out_type, name)


def _size(sparse: SparseTensor, name: str | None = None, out_type: Any = int32) -> Tensor:
    return reduce_prod(cast(sparse.dense_shape, out_type), name=name)


def _rank(sparse: SparseTensor, name: str | None = None) -> Tensor:
    return size(sparse.dense_shape, name)


OTHERS: dict[str, Callable[..., Any]] = {"rank": _rank, "shape": _shape, "size": _size}
