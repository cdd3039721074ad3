"""``tf.contrib.losses.metric_learning``: embeddings that are near where labels are the same."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, logical_and, logical_not
from runnel.ops.cross_entropy import softmax_cross_entropy_with_logits
from runnel.ops.diagonal import matrix_set_diag
from runnel.ops.elementwise import exp, log, sqrt
from runnel.ops.fill import zeros_like
from runnel.ops.matmul import matmul
from runnel.ops.reduce_functions import (
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
)
from runnel.ops.selection import where
from runnel.ops.transposition import transpose

__all__ = ["contrastive_loss", "lifted_struct_loss", "npairs_loss", "triplet_semihard_loss"]


def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Tensor:
    """Pairs with the label 1 are drawn together, those with 0 apart, up to ``margin``.

    See Hadsell et al. 2006.
    """
    with name_scope("contrastive_loss"):
        same = cast(labels, float32)
        difference = convert_to_tensor(embeddings_anchor) - embeddings_positive
        apart = sqrt(reduce_sum(difference * difference, 1))
        short = maximum(margin - apart, 0.0)
        return reduce_mean(same * apart * apart + (1.0 - same) * short * short)


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Each is to be nearer to those of its label than to others (Schroff et al. 2015).

    By ``margin``. The other that counts is the nearest that is farther than the one of the same
    label, or the farthest if there is none. ``embeddings`` [batch, size] should be of length 1.

    Example:
        >>> loss = tf.contrib.losses.metric_learning.triplet_semihard_loss(labels, embeddings)
    """
    with name_scope("triplet_semihard_loss"):
        apart = _distances(embeddings, squared=True)
        same = _same(labels)
        other = logical_not(same)
        # [anchor, of its label, of another]
        triples = expand_dims(apart, 1) + zeros_like(expand_dims(apart, 2))
        farther = logical_and(expand_dims(other, 1), triples > expand_dims(apart, 2))
        outside = _least_of(triples, farther)
        inside = expand_dims(_most_of(apart, other), 1) + zeros_like(apart)
        hard = where(reduce_any(farther, 2), outside, inside)
        pairs = _off_diagonal(same)
        return reduce_sum(maximum((margin + apart - hard) * pairs, 0.0)) / reduce_sum(pairs)


def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """The cross-entropy of products with all partners of a batch (Sohn 2016), and a penalty.

    ``print_losses`` is TensorFlow's; ask for what you want to see instead.
    """
    with name_scope("npairs_loss"):
        anchors = convert_to_tensor(embeddings_anchor)
        partners = convert_to_tensor(embeddings_positive)
        sizes = [reduce_mean(reduce_sum(each * each, 1)) for each in (anchors, partners)]
        same = cast(_same(labels), float32)
        wanted = same / reduce_sum(same, 1, keepdims=True)
        products = matmul(anchors, partners, transpose_b=True)
        entropy = softmax_cross_entropy_with_logits(labels=wanted, logits=products)
        return 0.25 * reg_lambda * (sizes[0] + sizes[1]) + reduce_mean(entropy)


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Each pair of a label against all others of the batch at once (Song et al. 2016)."""
    with name_scope("lifted_struct_loss"):
        apart = _distances(embeddings, squared=False)
        same = _same(labels)
        other = logical_not(same)
        near = margin - apart
        most = expand_dims(_most_of(near, other), 1)
        peaks = maximum(most, transpose(most))
        # [one of a pair, its partner, of another label]
        each = exp(expand_dims(near, 1) - expand_dims(peaks, 2))
        left = reduce_sum(each * cast(expand_dims(other, 1), float32), 2)
        pairs = _off_diagonal(same)
        counted = maximum((peaks + log(left + transpose(left)) + apart) * pairs, 0.0)
        return 0.25 * reduce_sum(counted * counted) / (reduce_sum(pairs) / 2.0)


def _same(labels: Any) -> Tensor:
    """Which pairs of a batch have the same label: [batch, batch]."""
    column = reshape(convert_to_tensor(labels), [-1, 1])
    return equal(column, transpose(column))


def _off_diagonal(same: Tensor) -> Tensor:
    pairs = cast(same, float32)
    return matrix_set_diag(pairs, zeros_like(pairs[0]))


def _distances(embeddings: Any, squared: bool) -> Tensor:
    """How far each is from each; from itself, exactly 0, and without a gradient."""
    given = convert_to_tensor(embeddings)
    sizes = reduce_sum(given * given, 1, keepdims=True)
    found = maximum(sizes + transpose(sizes) - 2.0 * matmul(given, given, transpose_b=True), 0.0)
    none = cast(found <= 0.0, found.dtype)
    if not squared:
        found = sqrt(found + none * 1e-16)
    found = found * (1.0 - none)
    return matrix_set_diag(found, zeros_like(found[0]))


def _most_of(values: Tensor, chosen: Tensor) -> Tensor:
    """The largest of the chosen values of each row; of none, the row's smallest."""
    least = reduce_min(values, -1, keepdims=True)
    found = reduce_max((values - least) * cast(chosen, values.dtype), -1, keepdims=True) + least
    return found[..., 0]


def _least_of(values: Tensor, chosen: Tensor) -> Tensor:
    """The smallest of the chosen values of each row; of none, the row's largest."""
    return -_most_of(-values, chosen)


def __dir__() -> list[str]:
    return __all__
