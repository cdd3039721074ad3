"""Losses over very many classes that look at a few of them: sampled softmax and NCE."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.ops.array_shape import expand_dims, reshape, size
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, logical_and, logical_not
from runnel.ops.control import stop_gradient
from runnel.ops.cross_entropy import softmax_cross_entropy_with_logits_v2
from runnel.ops.elementwise import log
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.ranges import range as positions
from runnel.ops.reduce_functions import reduce_any, reduce_sum
from runnel.ops.sampling.candidate_samplers import log_uniform_candidate_sampler
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.splitting import split


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None,
    name: str | None,
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes and then of the sampled ones, and what they should be.

    The rows of true and sampled classes are looked up together, so that each shard of the weights
    is asked once.
    """
    labels, inputs = convert_to_tensor(labels), convert_to_tensor(inputs)
    with name_scope(name, "compute_sampled_logits", [inputs, labels]):
        if labels.dtype.base_dtype is not dtypes.int64:
            labels = cast(labels, dtypes.int64)
        flat = reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, unique=True, range_max=num_classes, seed=seed
            )
        repeats = not getattr(sampled_values[0], "op", flat.op).attrs.get("unique", False)
        sampled, true_count, sampled_count = (stop_gradient(value) for value in sampled_values)
        sampled = cast(sampled, dtypes.int64)
        ids = concat([flat, sampled], 0)

        def both(table: Any) -> list[Tensor]:
            found = embedding_lookup(table, ids, partition_strategy=partition_strategy)
            sizes = stack([shape_of(flat)[0], shape_of(sampled)[0]])
            parts = split(cast(found, inputs.dtype.base_dtype), sizes)
            if found.dims is not None:
                for part, rows in zip(parts, (flat, sampled), strict=True):
                    part.set_shape((*(rows.dims or (None,)), *found.dims[1:]))
            return parts

        true_rows, sampled_rows = both(weights)
        true_biases, sampled_biases = both(biases)
        sampled_logits = matmul(inputs, sampled_rows, transpose_b=True) + sampled_biases
        width = shape_of(true_rows)[1]
        by_example = reshape(true_rows, stack([-1, num_true, width]))
        true_logits = reduce_sum(expand_dims(inputs, 1) * by_example, 2)
        true_logits += reshape(true_biases, [-1, num_true])
        if remove_accidental_hits:
            sampled_logits += _lowest_at_hits(labels, sampled, repeats, sampled_logits)
        if subtract_log_q:
            true_logits -= cast(log(true_count), inputs.dtype.base_dtype)
            sampled_logits -= cast(log(sampled_count), inputs.dtype.base_dtype)
        logits = concat([true_logits, sampled_logits], 1)
        targets = concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
        return logits, targets


def _lowest_at_hits(labels: Tensor, sampled: Tensor, repeats: bool, like: Tensor) -> Tensor:
    """The lowest float where a sampled class is a true one of the example, zeros elsewhere.

    ``compute_accidental_hits`` tells the same in a form whose size is data; this has a shape that
    is known beforehand, so the step stays compiled. Of a class that was sampled several times only
    the last one counts as hit there, so here too.
    """
    hit = reduce_any(equal(expand_dims(labels, 2), sampled), 1)
    if repeats:
        same = equal(expand_dims(sampled, 1), sampled)
        place = positions(size(sampled))
        later = expand_dims(place, 1) < place
        hit = logical_and(hit, logical_not(reduce_any(logical_and(same, later), 1)))
    lowest = cast(convert_to_tensor(np.finfo(np.float32).min), like.dtype.base_dtype)
    return get_op_def("SelectV2")(hit, lowest, zeros_like(lowest))


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax loss of each example over its true classes and some sampled ones, for training.

    ``weights`` (``[num_classes, dim]``) and ``biases`` may be lists of shards or partitioned
    variables; ``labels`` is a matrix of ``num_true`` columns, ``inputs`` is ``[batch, dim]``.
    ``sampled_values`` is what a candidate sampler gives; unless told otherwise
    :func:`log_uniform_candidate_sampler`, which expects classes in the order of their frequency.
    For evaluation use the full softmax.

    Example:
        >>> loss = tf.nn.sampled_softmax_loss(w, b, labels, outputs, 512, vocabulary_size)
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        seed,
        name,
    )
    targets = stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each example (Gutmann and Hyvärinen 2010).

    Each true class is told from noise, the sampled classes, by a logistic regression. The
    arguments are those of :func:`sampled_softmax_loss`.

    Example:
        >>> loss = tf.nn.nce_loss(w, b, labels, vectors, num_sampled=64, num_classes=50000)
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        None,
        name,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return reduce_sum(losses, 1)
