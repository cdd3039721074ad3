"""``tf.contrib.legacy_seq2seq``: unrolled decoders, and losses of lists of steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from runnel.graph.graph import name_scope
from runnel.nn.rnn.static import static_rnn
from runnel.ops.arithmetic import add_n
from runnel.ops.array_shape import reshape, shape
from runnel.ops.casting import cast
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.reduce_functions import reduce_sum
from runnel.variables.variable_scope import get_variable_scope, variable_scope

__all__ = [
    "basic_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]


def rnn_decoder(
    decoder_inputs: list[Any],
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


def sequence_loss_by_example(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of each example, over a list of steps."""
    if len({len(logits), len(targets), len(weights)}) != 1:
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same: {len(logits)}, "
            f"{len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        parts = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                labels = reshape(target, [-1])
                each = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logit)
            else:
                each = softmax_loss_function(labels=target, logits=logit)
            parts.append(each * weight)
        total = add_n(parts)
        if average_across_timesteps:
            total = total / (add_n(list(weights)) + 1e-12)
        return total


def sequence_loss(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of a batch, over a list of steps."""
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        cost = reduce_sum(
            sequence_loss_by_example(
                logits, targets, weights, average_across_timesteps, softmax_loss_function
            )
        )
        return cost / cast(shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def __dir__() -> list[str]:
    return __all__
