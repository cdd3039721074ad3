"""``InferenceHelper``: a decoder is fed what a function draws from its own outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.helper import Helper
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import fill


class InferenceHelper(Helper):
    """Samples ``sample_fn(outputs)`` and feeds it, or ``next_inputs_fn`` of it, to the next step.

    ``end_fn(sample_ids)`` says which sequences end with that sample. ``sample_shape`` and
    ``sample_dtype`` describe one sequence's sample; ``start_inputs`` are the first inputs.

    Example:
        >>> helper = tf.contrib.seq2seq.InferenceHelper(
        ...     sample_fn=lambda outputs: outputs, sample_shape=[3], sample_dtype=tf.float32,
        ...     start_inputs=tf.zeros([batch, 3]), end_fn=lambda x: x[:, 0] > 0.5)
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._sample_shape = TensorShape(sample_shape)
        self._sample_dtype = as_dtype(sample_dtype)
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._end_fn = end_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = shape_of(self._start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
