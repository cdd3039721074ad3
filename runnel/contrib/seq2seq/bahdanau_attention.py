"""Additive attention (Bahdanau, Cho and Bengio, 2015)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.attention_mechanism import MemoryAttention, stateless, type_of_memory
from runnel.graph.operation import Tensor
from runnel.layers.fully_connected import Dense
from runnel.ops.array_shape import expand_dims
from runnel.ops.elementwise import rsqrt, square, tanh
from runnel.ops.reduce_functions import reduce_sum
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant, Zeros
from runnel.variables.variable_scope import variable_scope


class BahdanauAttention(MemoryAttention):
    """Scores a place by ``v . tanh(key + W query)``, each of ``num_units`` elements.

    With ``normalize``, ``v`` has a learned length ``attention_g`` and there is a bias
    ``attention_b`` (weight normalisation, Salimans and Kingma, 2016). Variables:
    ``memory_layer/kernel`` and, in the scope "bahdanau_attention", ``query_layer/kernel`` and
    ``attention_v``.

    Example:
        >>> attention = tf.contrib.seq2seq.BahdanauAttention(
        ...     64, encoder_outputs, memory_sequence_length=lengths, normalize=True)
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        kind = type_of_memory(memory, dtype)
        super().__init__(
            query_layer=Dense(num_units, name="query_layer", use_bias=False, dtype=kind),
            memory_layer=Dense(num_units, name="memory_layer", use_bias=False, dtype=kind),
            memory=memory,
            probability_fn=stateless(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Tensor, Tensor]:
        """The weights of the places for ``query``, [batch, depth], and the same as state."""
        with variable_scope(None, "bahdanau_attention", [query]):
            processed = self.query_layer(query)
            score = bahdanau_score(processed, self.keys, self._num_units, self._normalize)
        alignments = self.probabilities(score, state)
        return alignments, alignments


def bahdanau_score(query: Tensor, keys: Tensor, num_units: int, normalize: bool) -> Tensor:
    """[batch, places] scores; the variables are those of the current scope."""
    dtype = query.dtype.base_dtype
    v = get_variable("attention_v", [num_units], dtype=dtype)
    summed = keys + expand_dims(query, 1)
    if not normalize:
        return reduce_sum(v * tanh(summed), [2])
    g = get_variable(
        "attention_g", shape=(), dtype=dtype, initializer=Constant(math.sqrt(1.0 / num_units))
    )
    b = get_variable("attention_b", [num_units], dtype=dtype, initializer=Zeros())
    direction = g * v * rsqrt(reduce_sum(square(v)))
    return reduce_sum(direction * tanh(summed + b), [2])
