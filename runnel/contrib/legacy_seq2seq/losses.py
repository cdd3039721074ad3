"""Losses of lists of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.graph import name_scope
from runnel.ops.arithmetic import add_n
from runnel.ops.array_shape import reshape, shape
from runnel.ops.casting import cast
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.reduce_functions import reduce_sum


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
