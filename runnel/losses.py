"""``tf.losses``: what training makes small, weighted, reduced and collected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.ops.activations import relu
from runnel.ops.arithmetic import add_n, maximum, minimum, squared_difference, subtract
from runnel.ops.array_shape import shape, size, squeeze
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater
from runnel.ops.control import stop_gradient
from runnel.ops.cross_entropy import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log, square
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]

_LOSSES = GraphKeys.LOSSES


class Reduction:
    """What becomes of the weighted losses of all elements."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every one of them."""
        return (
            *(cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE),
            *(cls.SUM_OVER_NONZERO_WEIGHTS, cls.SUM_BY_NONZERO_WEIGHTS),
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """A ValueError unless ``key`` is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}; there are {', '.join(set(cls.all()))}.")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


# The collection ---------------------------------------------------------------------------------


def add_loss(loss: Tensor, loss_collection: str | None = _LOSSES) -> None:
    """Adds a loss to the collection of losses."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = _LOSSES) -> list[Tensor]:
    """The losses of the collection, in ``scope`` if it is given."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The losses that regularize variables."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """The sum of the losses that regularize variables; 0 if there are none."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name=name) if losses else convert_to_tensor(0.0)


def get_total_loss(
    add_regularization_losses: bool = True,
    name: str = "total_loss",
    scope: str | None = None,
) -> Tensor:
    """The sum of all losses of the collection, and of what regularizes.

    Example:
        >>> tf.losses.mean_squared_error(labels, predictions)
        >>> train = optimizer.minimize(tf.losses.get_total_loss())
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return add_n(losses, name=name)


# Weights ----------------------------------------------------------------------------------------


def _check_weights(weights: Tensor, values: Tensor) -> None:
    """Weights are one number, or have a number or 1 for each dimension of ``values``."""
    given, wanted = weights.shape._dims, values.shape._dims
    if given is None or wanted is None or given == ():
        return
    fits = len(given) == len(wanted) and all(
        g is None or w is None or g in (1, w) for g, w in zip(given, wanted, strict=True)
    )
    if not fits:
        raise ValueError(
            f"weights can not be broadcast to values: weights have the shape {weights.shape}, "
            f"values {values.shape}"
        )


def _num_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    present = where(equal(weights, 0.0), zeros_like(weights), ones_like(weights))
    present = broadcast_to(present, shape(losses))
    if not per_batch:
        return reduce_sum(present)
    rank = losses.shape.rank
    if rank is None:
        raise ValueError("the rank of predictions and labels must be known")
    return reduce_sum(present, list(range(1, rank)), keepdims=True)


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """``losses`` times ``weights``, reduced to one number as ``reduction`` says, and collected."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        given_type = losses.dtype
        losses = cast(losses, float32)
        weights = cast(convert_to_tensor(weights), float32)
        _check_weights(weights, losses)
        loss = losses * weights
        if reduction != Reduction.NONE:
            weighted, loss = loss, reduce_sum(loss)
            if reduction == Reduction.MEAN:
                loss = div_no_nan(loss, reduce_sum(ones_like(weighted) * weights))
            elif reduction == _BY_NONZERO:
                loss = div_no_nan(loss, _num_present(weighted, weights))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = div_no_nan(loss, cast(size(weighted), float32))
        loss = cast(loss, given_type)
        add_loss(loss, loss_collection)
        return loss


def _of_predictions(
    formula: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    scope: str | None,
    name: str,
    loss_collection: str | None,
    reduction: str,
) -> Tensor:
    """A loss of numbers against numbers of the same shape."""
    if labels is None or predictions is None:
        raise ValueError("labels and predictions (or logits) must not be None.")
    with name_scope(scope, name, (predictions, labels, weights)) as inside:
        predictions = cast(convert_to_tensor(predictions), float32)
        labels = cast(convert_to_tensor(labels), float32)
        predictions.shape.assert_is_compatible_with(labels.shape)
        losses = formula(labels, predictions)
        return compute_weighted_loss(losses, weights, inside, loss_collection, reduction)


# Losses -----------------------------------------------------------------------------------------


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """How far predictions are from labels."""
    return _of_predictions(
        lambda y, p: abs_(subtract(p, y)),
        *(labels, predictions, weights, scope, "absolute_difference"),
        *(loss_collection, reduction),
    )


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
    dim: int | None = None,
) -> Tensor:
    """One less the cosine between vectors of length 1, which lie along ``axis``."""
    along = dim if axis is None else axis
    if along is None:
        raise ValueError("You must specify 'axis'.")
    return _of_predictions(
        lambda y, p: 1 - reduce_sum(p * y, axis=(along,), keepdims=True),
        *(labels, predictions, weights, scope, "cosine_distance_loss"),
        *(loss_collection, reduction),
    )


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """How far logits are on the wrong side of 1 (labels 1) or -1 (labels 0)."""
    return _of_predictions(
        lambda y, p: relu(1 - (2 * y - 1) * p),
        *(labels, logits, weights, scope, "hinge_loss", loss_collection, reduction),
    )


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """Half the square of the error up to ``delta``, and linear beyond it."""

    def formula(y: Tensor, p: Tensor) -> Tensor:
        error = abs_(subtract(p, y))
        quadratic = minimum(error, delta)
        return 0.5 * quadratic * quadratic + delta * (error - quadratic)

    return _of_predictions(
        formula,
        *(labels, predictions, weights, scope, "huber_loss", loss_collection, reduction),
    )


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of probabilities."""
    return _of_predictions(
        lambda y, p: -y * log(p + epsilon) - (1 - y) * log(1 - p + epsilon),
        *(labels, predictions, weights, scope, "log_loss", loss_collection, reduction),
    )


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The square of how far predictions are from labels."""
    return _of_predictions(
        lambda y, p: squared_difference(p, y),
        *(labels, predictions, weights, scope, "mean_squared_error"),
        *(loss_collection, reduction),
    )


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
) -> Tensor:
    """How much differences between predictions of a sample differ from those of its labels."""
    if labels is None or predictions is None:
        raise ValueError("labels and predictions must not be None.")
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        weights = cast(convert_to_tensor(weights), float32)
        labels = cast(convert_to_tensor(labels), float32)
        predictions = cast(convert_to_tensor(predictions), float32)
        predictions.shape.assert_is_compatible_with(labels.shape)
        _check_weights(weights, labels)
        errors = subtract(predictions, labels)
        count = _num_present(errors, weights, per_batch=True)
        axes = list(range(1, len(errors.shape.as_list() or ())))
        squares = reduce_sum(square(errors), axes, keepdims=True)
        totals = square(reduce_sum(errors, axes, keepdims=True))
        one = 2.0 * div_no_nan(squares, maximum(count - 1, 0.0))
        two = 2.0 * div_no_nan(totals, maximum(count * (count - 1), 0.0))
        loss = reduce_sum((one - two) * weights)
        loss = where(greater(reduce_sum(count), 0.0), loss, zeros_like(loss))
        add_loss(loss, loss_collection)
        return loss


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of classes that do not exclude each other."""
    if multi_class_labels is None or logits is None:
        raise ValueError("multi_class_labels and logits must not be None.")
    with name_scope(
        scope, "sigmoid_cross_entropy_loss", (logits, multi_class_labels, weights)
    ) as inside:
        logits = convert_to_tensor(logits)
        labels = cast(convert_to_tensor(multi_class_labels), logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inside, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of classes that exclude each other, whose labels are distributions."""
    if onehot_labels is None or logits is None:
        raise ValueError("onehot_labels and logits must not be None.")
    with name_scope(
        scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)
    ) as inside:
        logits = convert_to_tensor(logits)
        labels = cast(convert_to_tensor(onehot_labels), logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = cast(shape(labels)[-1], logits.dtype)
            labels = labels * (1 - label_smoothing) + label_smoothing / classes
        labels = stop_gradient(labels, name="labels_stop_gradient")
        losses = softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inside, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of classes that exclude each other, whose labels are their numbers."""
    if labels is None or logits is None:
        raise ValueError("labels and logits must not be None.")
    with name_scope(
        scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)
    ) as inside:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        weights = convert_to_tensor(weights)
        ranks = labels.shape.rank, logits.shape.rank
        if None not in ranks and ranks[0] == ranks[1] and labels.shape._dims[-1] in (1, None):
            labels = squeeze(labels, [-1])  # a column of labels
        if labels.shape.rank is not None and weights.shape.rank == labels.shape.rank + 1:
            weights = squeeze(weights, [-1])
        losses = sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, inside, loss_collection, reduction)


def __dir__() -> list[str]:
    return __all__
