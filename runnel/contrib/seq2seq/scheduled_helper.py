"""Scheduled sampling (Bengio et al., 2015): training on a mixture of truth and own output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.embedding_helper import as_embedding_function
from runnel.contrib.seq2seq.sampling import bernoulli_sample, categorical_sample
from runnel.contrib.seq2seq.training_helper import TrainingHelper, unstack_in_time
from runnel.control_flow.conditional import cond
from runnel.control_flow.structure import is_nested
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import maximum
from runnel.ops.casting import cast
from runnel.ops.comparison import greater_equal
from runnel.ops.fill import fill
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_all
from runnel.ops.selection import where


def _as_probability(given: Any, allow_vector: bool) -> Tensor:
    probability = convert_to_tensor(given, name="sampling_probability")
    if probability.dims is None or len(probability.dims) > int(allow_vector):
        kinds = "a scalar or a vector" if allow_vector else "a scalar"
        raise ValueError(
            f"sampling_probability must be {kinds}, not {format_dims(probability.dims)}"
        )
    return probability


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds the embedding of a token drawn from the outputs, with a probability, else the truth.

    ``sample_ids`` are the tokens drawn, and -1 where the truth is fed.

    Example:
        >>> helper = tf.contrib.seq2seq.ScheduledEmbeddingTrainingHelper(
        ...     embedded_targets, lengths, table, sampling_probability=0.1)
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper", [sampling_probability]):
            self._embedding_fn = as_embedding_function(embedding)
            self._sampling_probability = _as_probability(sampling_probability, allow_vector=True)
            self._seed = seed
            self._scheduling_seed = scheduling_seed
            super().__init__(inputs, sequence_length, time_major=time_major, name=name)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            chosen = bernoulli_sample(
                self._sampling_probability, self.batch_size, self._scheduling_seed
            )
            drawn = categorical_sample(outputs, self._seed)
            return where(cast(chosen, bool_), drawn, fill([self.batch_size], -1))

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time, outputs]):
            finished, truth, state = super().next_inputs(time, outputs, state, sample_ids)

            def mixed() -> Any:
                # Every row is looked up and the fitting ones are chosen: shapes stay known.
                drawn = self._embedding_fn(maximum(sample_ids, 0))
                return where(greater_equal(sample_ids, 0), drawn, truth)

            return finished, cond(reduce_all(finished), lambda: truth, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds the decoder's own output (or a function of it), with a probability, else the truth.

    ``sample_ids`` are 1 where the output is fed and 0 where the truth is. ``auxiliary_inputs``,
    of the form of ``inputs``, are joined to what is fed.

    Example:
        >>> helper = tf.contrib.seq2seq.ScheduledOutputTrainingHelper(
        ...     targets, lengths, sampling_probability=0.1, next_inputs_fn=tf.nn.softmax)
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledOutputTrainingHelper", [sampling_probability]):
            self._sampling_probability = _as_probability(sampling_probability, allow_vector=False)
            self._auxiliary_array = None
            if auxiliary_inputs is not None:
                if is_nested(inputs) or is_nested(auxiliary_inputs):
                    raise ValueError(
                        "auxiliary_inputs can be joined to inputs that are a single tensor, not to "
                        "a structure"
                    )
                inputs = convert_to_tensor(inputs, name="inputs")
                auxiliary = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = concat([inputs, auxiliary], -1)
                self._auxiliary_array = unstack_in_time(auxiliary, time_major)
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            super().__init__(inputs, sequence_length, time_major=time_major, name=name)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs]):
            return bernoulli_sample(self._sampling_probability, self.batch_size, self._seed)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time, outputs]):
            finished, truth, state = super().next_inputs(time, outputs, state, sample_ids)

            def mixed() -> Any:
                own = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
                if self._auxiliary_array is not None:
                    own = concat([own, self._auxiliary_array.read(time + 1)], -1)
                return where(cast(sample_ids, bool_), own, truth)

            return finished, cond(reduce_all(finished), lambda: truth, mixed), state
