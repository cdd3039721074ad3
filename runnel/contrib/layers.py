"""``tf.contrib.layers``: what programs use of it for embeddings."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.embedding import embedding_lookup
from runnel.ops.gather import gather
from runnel.ops.sparse.embedding import safe_embedding_lookup_sparse
from runnel.ops.unique import unique

__all__ = ["embedding_lookup_unique", "safe_embedding_lookup_sparse"]


def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """``tf.nn.embedding_lookup`` that asks for each row once, however often ``ids`` names it.

    That saves traffic where the table is cut over tasks and ids repeat.

    Example:
        >>> tf.contrib.layers.embedding_lookup_unique(table, words)
    """
    with name_scope(name, "EmbeddingLookupUnique", [ids]):
        wanted = convert_to_tensor(ids)
        distinct, places = unique(reshape(wanted, [-1]))
        rows = embedding_lookup(params, distinct, partition_strategy)
        return gather(rows, reshape(places, shape_of(wanted)))


def __dir__() -> list[str]:
    return __all__
