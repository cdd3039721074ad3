"""Decoders along a list of inputs, and encoders before them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from runnel.nn.rnn.static import static_rnn
from runnel.variables.variable_scope import get_variable_scope, variable_scope


def rnn_decoder(
    decoder_inputs: Iterable[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """The outputs of a cell along a list of inputs, and its last state.

    With ``loop_function`` the inputs after the first are what it makes of the output before.
    """
    with variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, []
        previous: Any = None
        for number, given in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(previous, number)
            if number:
                get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
            if loop_function is not None:
                previous = output
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    dtype: Any = "float32",
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A cell along the encoder's inputs; another, from that state, along the decoder's."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = "float32",
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """:func:`basic_rnn_seq2seq` with one set of variables for both."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope=name)
