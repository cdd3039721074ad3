"""What queues keep of the tensors of an example: a sparse one as three strings."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.sparse.serialization import (
    deserialize_many_sparse,
    serialize_many_sparse,
    serialize_sparse,
)


def as_list(tensors: Any) -> list[Any]:
    """The tensors of an example, those of a dictionary in the order of its keys."""
    if isinstance(tensors, dict):
        return [tensors[key] for key in sorted(tensors)]
    return list(tensors) if isinstance(tensors, list | tuple) else [tensors]


def sparse_or_none(component: Any) -> SparseTensor | None:
    """``component`` as a sparse tensor, if it is one."""
    return SparseTensor.from_value(component) if is_sparse(component) else None


def stored(component: Any, enqueue_many: bool = False) -> Tensor:
    """What a queue keeps of ``component``, or of each of its rows."""
    sparse = sparse_or_none(component)
    if sparse is None:
        return convert_to_tensor(component)
    if enqueue_many:
        rows = serialize_many_sparse(sparse)
        rows.set_shape([None, 3])
        return rows
    return serialize_sparse(sparse)


def restored(batch: Tensor, sparse: SparseTensor | None, enqueue_many: bool = False) -> Any:
    """A batch as it is used; ``sparse`` is what its elements were made of, if they are strings."""
    if sparse is None:
        return batch
    rank = sparse.dense_shape.get_shape().with_rank(1).as_list()[0]
    if rank is not None and not enqueue_many:
        rank += 1
    return deserialize_many_sparse(batch, sparse.dtype.base_dtype, rank=rank)
