"""Multiplicative attention (Luong, Pham and Manning, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.attention_mechanism import MemoryAttention, stateless, type_of_memory
from runnel.graph.operation import Tensor
from runnel.layers.fully_connected import Dense
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.matmul import matmul
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Ones
from runnel.variables.variable_scope import variable_scope


class LuongAttention(MemoryAttention):
    """Scores a place by the product of its key with the query, times a learned number if ``scale``.

    The keys are the memory times a matrix, ``memory_layer/kernel``, of ``num_units`` columns, the
    depth of the query.

    Example:
        >>> attention = tf.contrib.seq2seq.LuongAttention(
        ...     128, encoder_outputs, memory_sequence_length=lengths)
        >>> cell = tf.contrib.seq2seq.AttentionWrapper(cell, attention, attention_layer_size=128)
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        kind = type_of_memory(memory, dtype)
        super().__init__(
            query_layer=None,
            memory_layer=Dense(num_units, name="memory_layer", use_bias=False, dtype=kind),
            memory=memory,
            probability_fn=stateless(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Tensor, Tensor]:
        """The weights of the places for ``query``, [batch, num_units], and the same as state."""
        with variable_scope(None, "luong_attention", [query]):
            score = luong_score(query, self.keys, self._scale)
        alignments = self.probabilities(score, state)
        return alignments, alignments


def luong_score(query: Tensor, keys: Tensor, scale: bool) -> Tensor:
    """[batch, places] products of keys and query; ``scale`` multiplies by ``attention_g``."""
    units = query.dims[-1] if query.dims else None
    key_units = keys.dims[-1] if keys.dims else None
    if units != key_units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys. Query "
            f"({query.name}) has units: {units}. Keys ({keys.name}) have units: {key_units}. "
            f"Perhaps you need to set num_units to the query's dimension ({units})?"
        )
    score = squeeze(matmul(expand_dims(query, 1), keys, transpose_b=True), [1])
    if not scale:
        return score
    return score * get_variable(
        "attention_g", dtype=query.dtype.base_dtype, initializer=Ones(), shape=()
    )
