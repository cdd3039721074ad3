"""The loss of a predicted sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.reduce_functions import count_nonzero, reduce_sum
from runnel.ops.zero_safe import div_no_nan

# Keeps a batch whose weights are all 0 from dividing by 0.
_TINY = 1e-12


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of ``targets`` under ``logits``, averaged or summed.

    ``logits`` are [batch, time, classes], ``targets`` [batch, time] integers and ``weights``
    [batch, time] floats, 0 for the steps beyond a sequence's end. An average is over the sum of
    the weights; a sum over the batch or the steps is divided by the number of weights that are
    not 0. Without an average or a sum along an axis, the result keeps it.
    ``softmax_loss_function(labels=, logits=)`` replaces the cross entropy.

    Example:
        >>> weights = tf.sequence_mask(lengths, tf.shape(targets)[1], tf.float32)
        >>> loss = tf.contrib.seq2seq.sequence_loss(logits, targets, weights)
    """
    logits = convert_to_tensor(logits, name="logits")
    targets = convert_to_tensor(targets, name="targets")
    weights = convert_to_tensor(weights, name="weights")
    for label, value, rank, what in (
        ("Logits", logits, 3, "[batch_size x sequence_length x logits]"),
        ("Targets", targets, 2, "[batch_size x sequence_length]"),
        ("Weights", weights, 2, "[batch_size x sequence_length]"),
    ):
        if value.dims is None or len(value.dims) != rank:
            raise ValueError(
                f"{label} must be a {rank}-dimensional {what} tensor, but {value.name} has the "
                f"shape {format_dims(value.dims)}"
            )
    for what, average, total in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if average and total:
            raise ValueError(
                f"average_across_{what} and sum_over_{what} cannot be set to True at same time."
            )
    if (sum_over_batch and average_across_timesteps) or (
        sum_over_timesteps and average_across_batch
    ):
        raise ValueError("A sum over one axis and an average over the other cannot be combined.")
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        losses = _weighted_losses(logits, targets, weights, softmax_loss_function)
        if average_across_timesteps and average_across_batch:
            return reduce_sum(losses) / (reduce_sum(weights) + _TINY)
        if sum_over_timesteps and sum_over_batch:
            return div_no_nan(reduce_sum(losses), cast(count_nonzero(weights), losses.dtype))
        losses = reshape(losses, shape_of(logits)[:2])
        if average_across_timesteps or average_across_batch:
            axis = 0 if average_across_batch else 1
            return reduce_sum(losses, axis=axis) / (reduce_sum(weights, axis=axis) + _TINY)
        if sum_over_timesteps or sum_over_batch:
            axis = 0 if sum_over_batch else 1
            count = cast(count_nonzero(weights, axis=axis), losses.dtype)
            return div_no_nan(reduce_sum(losses, axis=axis), count)
        return losses


def _weighted_losses(
    logits: Tensor, targets: Tensor, weights: Tensor, loss_function: Callable[..., Any] | None
) -> Tensor:
    """One loss for each step of each sequence, flat."""
    assert logits.dims is not None
    classes = logits.dims[2] if logits.dims[2] is not None else shape_of(logits)[2]
    flat_logits = reshape(logits, [-1, classes])
    flat_targets = reshape(targets, [-1])
    function = loss_function or sparse_softmax_cross_entropy_with_logits
    return function(labels=flat_targets, logits=flat_logits) * reshape(weights, [-1])
