"""Bahdanau's and Luong's scores with monotonic weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from runnel.contrib.seq2seq.attention_mechanism import MemoryAttention, type_of_memory
from runnel.contrib.seq2seq.bahdanau_attention import bahdanau_score
from runnel.contrib.seq2seq.luong_attention import luong_score
from runnel.contrib.seq2seq.monotonic import monotonic_probability
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.layers.fully_connected import Dense
from runnel.ops.fill import zeros
from runnel.ops.one_hot import one_hot
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant
from runnel.variables.variable_scope import variable_scope


class MonotonicAttention(MemoryAttention):
    """What the monotonic mechanisms have in common: they begin at the first place."""

    def __init__(
        self,
        query_layer: Any,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any,
        score_mask_value: Any,
        sigmoid_noise: float,
        sigmoid_noise_seed: int | None,
        score_bias_init: float,
        mode: str,
        dtype: Any,
    ) -> None:
        if mode not in ("recursive", "parallel", "hard"):
            raise ValueError(f"mode must be 'recursive', 'parallel', or 'hard', not {mode!r}.")
        super().__init__(
            query_layer=query_layer,
            memory_layer=Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype),
            memory=memory,
            probability_fn=partial(
                monotonic_probability,
                sigmoid_noise=sigmoid_noise,
                mode=mode,
                seed=sigmoid_noise_seed,
            ),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
        )
        self._num_units = num_units
        self._score_bias_init = score_bias_init

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All the weight on the first place."""
        return one_hot(zeros([batch_size], dtype=int32), self.alignments_size, dtype=dtype)

    def _bias(self, dtype: Any) -> Any:
        """What is added to all scores: negative, it makes long steps likelier."""
        return get_variable(
            "attention_score_bias",
            shape=(),
            dtype=dtype,
            initializer=Constant(self._score_bias_init),
        )


class BahdanauMonotonicAttention(MonotonicAttention):
    """:class:`BahdanauAttention`'s scores, monotonic weights.

    The scores get a learned bias, ``score_bias_init`` at first, and noise of ``sigmoid_noise``
    standard deviations. ``mode`` is :func:`monotonic_attention`'s.

    Example:
        >>> attention = tf.contrib.seq2seq.BahdanauMonotonicAttention(
        ...     64, encoder_outputs, lengths, normalize=True, sigmoid_noise=1.0)
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        kind = type_of_memory(memory, dtype)
        super().__init__(
            query_layer=Dense(num_units, name="query_layer", use_bias=False, dtype=kind),
            num_units=num_units,
            memory=memory,
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            sigmoid_noise=sigmoid_noise,
            sigmoid_noise_seed=sigmoid_noise_seed,
            score_bias_init=score_bias_init,
            mode=mode,
            dtype=kind,
        )
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Tensor, Tensor]:
        """The weights of the places for ``query``, after the weights ``state``."""
        with variable_scope(None, "bahdanau_monotonic_attention", [query]):
            processed = self.query_layer(query)
            score = bahdanau_score(processed, self.keys, self._num_units, self._normalize)
            score = score + self._bias(processed.dtype.base_dtype)
        alignments = self.probabilities(score, state)
        return alignments, alignments


class LuongMonotonicAttention(MonotonicAttention):
    """:class:`LuongAttention`'s scores, monotonic weights.

    The other arguments are :class:`BahdanauMonotonicAttention`'s.

    Example:
        >>> attention = tf.contrib.seq2seq.LuongMonotonicAttention(128, encoder_outputs, lengths)
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            num_units=num_units,
            memory=memory,
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            sigmoid_noise=sigmoid_noise,
            sigmoid_noise_seed=sigmoid_noise_seed,
            score_bias_init=score_bias_init,
            mode=mode,
            dtype=type_of_memory(memory, dtype),
        )
        self._scale = scale
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Tensor, Tensor]:
        """The weights of the places for ``query``, after the weights ``state``."""
        with variable_scope(None, "luong_monotonic_attention", [query]):
            score = luong_score(query, self.keys, self._scale)
            score = score + self._bias(query.dtype.base_dtype)
        alignments = self.probabilities(score, state)
        return alignments, alignments
