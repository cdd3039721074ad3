"""One model for each of some lengths, with shared variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.legacy_seq2seq.losses import sequence_loss, sequence_loss_by_example
from runnel.graph.graph import name_scope
from runnel.variables.variable_scope import get_variable_scope, variable_scope


def model_with_buckets(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    targets: list[Any],
    weights: list[Any],
    buckets: list[tuple[int, int]],
    seq2seq: Callable[[list[Any], list[Any]], tuple[Any, Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """The outputs and the loss of ``seq2seq`` for each bucket, a pair of lengths.

    ``softmax_loss_function(labels, logits)`` replaces the softmax, such as by a sampled one.
    """
    for what, given, needed in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]),
        ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):
        if len(given) < needed:
            raise ValueError(
                f"Length of {what} ({len(given)}) must be at least that of last bucket ({needed})."
            )
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with name_scope(
        name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]
    ):
        for number, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(found)
                losses.append(
                    loss_of(
                        found,
                        targets[:target],
                        weights[:target],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses
