"""``AttentionMechanism``: scores a memory against a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.assertions import assert_positive
from runnel.ops.casting import cast
from runnel.ops.fill import zeros
from runnel.ops.joining import concat
from runnel.ops.masking import sequence_mask
from runnel.ops.selection import where_v2
from runnel.ops.softmax import softmax


class AttentionMechanism:
    """Gives weights over the places of a memory: ``mechanism(query, state)``.

    The result is ``(alignments, next_state)``: [batch, places] weights, and what the mechanism
    wants to see in the next step.
    """

    @property
    def alignments_size(self) -> Any:
        """The number of places."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the mechanism's state."""
        raise NotImplementedError

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        raise NotImplementedError


class MemoryAttention(AttentionMechanism):
    """What the mechanisms over an encoder's outputs have in common.

    ``memory`` is [batch, places, depth]; places from ``memory_sequence_length`` on are zeros and
    get the score ``score_mask_value``, minus infinity unless given. The *values* are the memory,
    the *keys* what ``memory_layer`` makes of it; ``custom_key_value_fn(keys, values)`` may change
    both. ``probability_fn(scores, state)`` makes weights of scores.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Tensor, Tensor], Tensor],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
        name: str | None = None,
    ) -> None:
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not callable(layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw: {probability_fn!r}")
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self._probability_fn = probability_fn
        with name_scope(name, "BaseAttentionMechanismInit", [memory]):
            values = convert_to_tensor(memory, name="memory")
            _require_memory(values, check_inner_dims_defined)
            places = values.dims[1] if values.dims else None
            self._alignments_size = shape_of(values)[1] if places is None else places
            self._mask: Tensor | None = None
            if memory_sequence_length is not None:
                self._mask = _mask_of(memory_sequence_length, self._alignments_size)
                values = _masked_memory(values, self._mask)
            self._values = values
            self._keys = values if memory_layer is None else memory_layer(values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            batch = self._keys.dims[0] if self._keys.dims else None
            self._batch_size = shape_of(self._keys)[0] if batch is None else batch
        self._dtype = as_dtype(getattr(memory_layer, "dtype", None) or self._keys.dtype)
        self._score_mask_value = -float("inf") if score_mask_value is None else score_mask_value

    @property
    def memory_layer(self) -> Any:
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        return self._query_layer

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def keys(self) -> Tensor:
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The memory's batch size: a number where it is known, else a tensor."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    @property
    def dtype(self) -> DType:
        return self._dtype

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """The weights before the first step: zeros."""
        made = zeros([batch_size, self._alignments_size], dtype=dtype)
        if isinstance(self._alignments_size, int):
            made.set_shape((None, self._alignments_size))
        return made

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step: the initial weights."""
        return self.initial_alignments(batch_size, dtype)

    def probabilities(self, score: Tensor, state: Tensor) -> Tensor:
        """The weights that [batch, places] scores give, without the places beyond the memory."""
        if self._mask is not None:
            hidden = convert_to_tensor(self._score_mask_value, dtype=score.dtype.base_dtype)
            score = where_v2(self._mask, score, hidden)
        return self._probability_fn(score, state)


def stateless(probability_fn: Callable[[Tensor], Tensor] | None) -> Callable[..., Tensor]:
    """A function of scores (softmax if None) as one of scores and state."""
    function = softmax if probability_fn is None else probability_fn
    return lambda score, _: function(score)


def type_of_memory(memory: Any, dtype: Any) -> DType:
    """The type in which a mechanism computes: the one given, or the memory's."""
    return as_dtype(dtype) if dtype is not None else convert_to_tensor(memory).dtype.base_dtype


def _require_memory(memory: Tensor, check_inner_dims_defined: bool) -> None:
    dims = memory.dims
    if dims is not None and len(dims) < 3:
        raise ValueError(
            f"An attention memory must be [batch, places, depth], but {memory.name} has the shape "
            f"{format_dims(dims)}"
        )
    if check_inner_dims_defined and (dims is None or None in dims[2:]):
        raise ValueError(
            f"Expected memory {memory.name} to have fully defined inner dims, but saw shape: "
            f"{format_dims(dims)}"
        )


def _mask_of(memory_sequence_length: Any, places: Any) -> Tensor:
    """True at the places that are in the memory; made once, not in every step."""
    lengths = convert_to_tensor(memory_sequence_length, name="memory_sequence_length")
    positive = assert_positive(
        lengths, message="All values in memory_sequence_length must be greater than zero."
    )
    with control_dependencies([positive]):
        return sequence_mask(lengths, maxlen=places)


def _masked_memory(memory: Tensor, mask: Tensor) -> Tensor:
    assert memory.dims is not None
    ones = [1] * (len(memory.dims) - 2)
    return memory * cast(reshape(mask, concat([shape_of(mask), ones], 0)), memory.dtype.base_dtype)
