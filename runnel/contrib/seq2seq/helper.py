"""``Helper``: chooses what a decoder is fed next."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype, int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import size


class Helper(abc.ABC):
    """Samples from a decoder's outputs and makes its next inputs; :class:`BasicDecoder` asks it.

    ``sample`` makes ids of the outputs of a step, ``next_inputs`` makes of them the inputs of the
    next step and says which sequences are finished.
    """

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences, as a scalar tensor."""

    @property
    @abc.abstractmethod
    def sample_ids_shape(self) -> TensorShape:
        """The shape of one sequence's sample, without the batch."""

    @property
    @abc.abstractmethod
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are finished before the first step, and the first inputs."""

    @abc.abstractmethod
    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The sample of a step's outputs."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are finished after this step, the next inputs, the next state."""


class CustomHelper(Helper):
    """A helper of three functions.

    ``initialize_fn()`` gives ``(finished, inputs)``; ``sample_fn(time, outputs, state)`` gives
    sample ids; ``next_inputs_fn(time, outputs, state, sample_ids)`` gives ``(finished, inputs,
    state)``.

    Example:
        >>> helper = tf.contrib.seq2seq.CustomHelper(
        ...     initialize_fn=lambda: (tf.tile([False], [batch]), first),
        ...     sample_fn=lambda time, outputs, state: tf.argmax(outputs, 1, output_type=tf.int32),
        ...     next_inputs_fn=lambda time, outputs, state, ids: (time > 5, outputs, state))
    """

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Tensor | None = None
        self._sample_ids_shape = TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self._sample_ids_dtype = int32 if sample_ids_dtype is None else as_dtype(sample_ids_dtype)

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = size(convert_to_tensor(finished))
        return finished, inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, f"{type(self).__name__}Sample", [time]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, f"{type(self).__name__}NextInputs", [time]):
            return self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
