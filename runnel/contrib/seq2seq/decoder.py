"""``Decoder``: what :func:`dynamic_decode` runs step by step."""

from __future__ import annotations

import abc
from typing import Any

from runnel.graph.operation import Tensor


class Decoder(abc.ABC):
    """One step of decoding, its initial values, and the shapes and types of what it gives.

    Outputs, states and inputs may be structures of tensors, whose first axis is the batch.
    """

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences, as a scalar tensor."""

    @property
    @abc.abstractmethod
    def output_size(self) -> Any:
        """The shapes of one sequence's outputs of a step, without the batch."""

    @property
    @abc.abstractmethod
    def output_dtype(self) -> Any:
        """The types of the outputs of a step."""

    @property
    def tracks_own_finished(self) -> bool:
        """True when ``finished`` of a step is final; else a finished sequence stays finished.

        A beam search reorders its sequences, so it keeps account itself.
        """
        return False

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Before the first step: ``(finished, inputs, state)``."""

    @abc.abstractmethod
    def step(
        self, time: Tensor, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """One step: ``(outputs, next_state, next_inputs, finished)``."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """What is returned for the [time, batch, ...] outputs and the final state: just these."""
        return outputs, final_state
