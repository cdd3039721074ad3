"""Helpers that feed a decoder the embedding of what it has just produced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.helper import Helper
from runnel.contrib.seq2seq.sampling import categorical_sample
from runnel.control_flow.conditional import cond
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, format_dims
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import size
from runnel.ops.comparison import equal
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fill import fill
from runnel.ops.reduce_functions import reduce_all


def as_embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """``embedding`` if it is a function of ids, else the lookup in that table."""
    if callable(embedding):
        return embedding
    return lambda ids: embedding_lookup(embedding, ids)


class GreedyEmbeddingHelper(Helper):
    """Takes the likeliest token of each step and feeds its embedding to the next.

    ``embedding`` is a function of a vector of ids or the table in which to look them up. A
    sequence ends with ``end_token``.

    Example:
        >>> helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(
        ...     table, start_tokens=tf.fill([batch_size], GO), end_token=EOS)
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = as_embedding_function(embedding)
        self._start_tokens = convert_to_tensor(start_tokens, dtype=int32, name="start_tokens")
        self._end_token = convert_to_tensor(end_token, dtype=int32, name="end_token")
        if self._start_tokens.dims is None or len(self._start_tokens.dims) != 1:
            raise ValueError(
                "start_tokens must be a vector, one for each sequence, not "
                f"{format_dims(self._start_tokens.dims)}"
            )
        if self._end_token.dims != ():
            raise ValueError(f"end_token must be a scalar, not {format_dims(self._end_token.dims)}")
        self._batch_size = size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        _require_tensor(outputs)
        return argmax(outputs, axis=-1, output_type=int32)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = equal(sample_ids, self._end_token)
        # When all are finished the next inputs are not used.
        inputs = cond(
            reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embedding_fn(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Draws each token from the distribution that the outputs, as logits, describe.

    Logits are divided by ``softmax_temperature``: above 1 the draws are more varied, near 0 they
    are the likeliest.

    Example:
        >>> helper = tf.contrib.seq2seq.SampleEmbeddingHelper(table, start, EOS, 0.7, seed=1)
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        _require_tensor(outputs)
        logits = outputs
        if self._softmax_temperature is not None:
            logits = logits / self._softmax_temperature
        return categorical_sample(logits, self._seed)


def _require_tensor(outputs: Any) -> None:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs).__name__}")
