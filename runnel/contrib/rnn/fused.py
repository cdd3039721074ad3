"""Networks that are called with a whole sequence: ``FusedRNNCell`` and what makes one."""

from __future__ import annotations

import abc
from typing import Any

from runnel.nn.rnn.dynamic import dynamic_rnn
from runnel.nn.rnn.static import static_rnn
from runnel.ops.joining import stack
from runnel.ops.reversal import reverse, reverse_sequence
from runnel.ops.splitting import unstack


class FusedRNNCell(abc.ABC):
    """A function from a sequence of inputs to that of outputs and the last state."""

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """Runs along ``inputs``, of shape [time, batch, size], or a list of [batch, size].

        Returns the outputs in the same form, and the last state.
        """


class FusedRNNCellAdaptor(FusedRNNCell):
    """An ordinary cell as a fused one; ``use_dynamic_rnn`` runs a loop in place of copies."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        as_list = isinstance(inputs, list)
        how = {
            "initial_state": initial_state,
            "dtype": dtype,
            "sequence_length": sequence_length,
            "scope": scope,
        }
        if self._use_dynamic_rnn:
            whole = stack(inputs) if as_list else inputs
            outputs, state = dynamic_rnn(self._cell, whole, time_major=True, **how)
            return (unstack(outputs) if as_list else outputs), state
        steps = inputs if as_list else unstack(inputs)
        listed, state = static_rnn(self._cell, steps, **how)
        return (listed if as_list else stack(listed)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell that reads the sequence from its end.

    Example:
        >>> forward = tf.contrib.rnn.LSTMBlockFusedCell(8)
        >>> backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(8))
    """

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return sequence[::-1]
    if lengths is None:
        return reverse(sequence, [0])
    return reverse_sequence(sequence, lengths, seq_axis=0, batch_axis=1)
