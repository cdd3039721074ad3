"""Embeddings of ``tf.contrib.layers``."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.variables import model_variable
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.embedding import embedding_lookup
from runnel.ops.gather import gather
from runnel.ops.unique import unique as unique_of
from runnel.variables.variable_scope import variable_scope


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
        distinct, places = unique_of(reshape(wanted, [-1]))
        rows = embedding_lookup(params, distinct, partition_strategy)
        return gather(rows, reshape(places, shape_of(wanted)))


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """Rows of a table, the variable ``embeddings``, for each id of sequences [batch, length]."""
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("embed_sequence needs vocab_size and embed_dim, unless it reuses a table")
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        wanted = convert_to_tensor(ids)
        dims = None if vocab_size is None else [vocab_size, embed_dim]
        table = model_variable(
            "embeddings",
            shape=dims,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return embedding_lookup_unique(table, wanted) if unique else embedding_lookup(table, wanted)
