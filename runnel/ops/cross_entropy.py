"""Cross-entropies between labels and logits, computed from the logits so that none overflows."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, broadcast_dims, compatible_dims, format_dims, merge_dims
from runnel.ops.array_shape import expand_dims, rank, reshape, shape
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.casting import cast
from runnel.ops.control import identity, stop_gradient
from runnel.ops.half_precision import narrow, widen
from runnel.ops.reduce_functions import one_of, reduce_sum
from runnel.ops.softmax import log_softmax, shifted, softmax, swap_with_last
from runnel.ops.transposition import transpose

_FLOAT = "T: {half, bfloat16, float, double}"

softmax_cross_entropy_op = register_op(
    "SoftmaxCrossEntropyWithLogits",
    inputs="features: T, labels: T",
    outputs="loss: T, backprop: T",
    attrs=_FLOAT,
)
sparse_softmax_cross_entropy_op = register_op(
    "SparseSoftmaxCrossEntropyWithLogits",
    inputs="features: T, labels: Tlabels",
    outputs="loss: T, backprop: T",
    attrs=[_FLOAT, "Tlabels: {int32, int64} = DT_INT64"],
)


def _require_rank(tensor: Tensor, rank: int, what: str) -> None:
    if tensor.dims is not None and len(tensor.dims) != rank:
        raise ValueError(f"{what} must have rank {rank}, not shape {format_dims(tensor.dims)},")


@softmax_cross_entropy_op.shape
def _(features, labels):
    _require_rank(features, 2, "logits")
    _require_rank(labels, 2, "labels")
    dims = broadcast_dims(features.dims or (None, None), labels.dims or (None, None))
    assert dims is not None
    return [dims[:1], dims]


@sparse_softmax_cross_entropy_op.shape
def _(features, labels):
    _require_rank(features, 2, "logits")
    _require_rank(labels, 1, "labels")
    dims = features.dims or (None, None)
    batch: Dims = merge_dims(dims[:1], labels.dims)
    assert batch is not None
    return [batch, batch + dims[1:]]


@softmax_cross_entropy_op.kernel
def _(xp, features, labels):
    if features.ndim != 2 or labels.ndim != 2:
        raise InvalidArgumentError(
            None,
            None,
            f"logits and labels must be matrices, not {features.shape} and {labels.shape}",
        )
    try:
        dims = np.broadcast_shapes(features.shape, labels.shape)
    except ValueError:
        raise InvalidArgumentError(
            None,
            None,
            "logits and labels must have the same shape (or broadcast to it), "
            f"not {features.shape} and {labels.shape}",
        ) from None
    p = xp.broadcast_to(widen(labels), dims)
    z = shifted(xp, xp.broadcast_to(widen(features), dims))
    e = xp.exp(z)
    total = xp.sum(e, axis=1, keepdims=True)
    # A logit of -inf excludes its class: it costs nothing where the label has no weight there.
    terms = xp.where(p == 0, 0, p * (xp.log(total) - z))
    return narrow(xp.sum(terms, axis=1), features.dtype), narrow(e / total - p, features.dtype)


@sparse_softmax_cross_entropy_op.kernel
def _(xp, features, labels, *, check, platform):
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise InvalidArgumentError(
            None,
            None,
            "logits must be a matrix and labels a vector with one label for each row of logits, "
            f"not {features.shape} and {labels.shape}",
        )
    classes = features.shape[1]
    if classes == 0:
        raise InvalidArgumentError(
            None, None, f"There must be at least one class, but logits have shape {features.shape}"
        )

    def explain() -> str:
        bad = np.flatnonzero((labels < 0) | (labels >= classes))
        return (
            f"Received a label value of {labels[bad[0]]} (at position {bad[0]}) which is outside "
            f"the valid range of [0, {classes})"
        )

    valid = (labels >= 0) & (labels < classes)
    if platform == "cpu":
        check(xp.all(valid), explain)
    x = widen(features)
    largest = xp.max(x, axis=1, keepdims=True)
    e = xp.exp(x - largest)
    total = xp.sum(e, axis=1, keepdims=True)
    if xp is np:  # where the check has held
        place = np.arange(len(labels)), labels
        loss = np.log(total)[:, 0] - (x[place] - largest[:, 0])
        e /= total
        e[place] -= 1
        return narrow(loss, features.dtype), narrow(e, features.dtype)
    column = xp.clip(labels, 0, classes - 1)[:, None]  # a failed check must not break the rest
    # Taken from x itself, so that XLA need not store the shifted logits for it.
    picked = xp.take_along_axis(x, column, axis=1) - largest
    loss = (xp.log(total) - picked)[:, 0]
    chosen = column == xp.arange(classes, dtype=labels.dtype)
    backprop = e / total - chosen
    if platform != "cpu":
        # As TensorFlow on a GPU: NaN in place of an error, for which every step would have to be
        # awaited before the next one is sent to the device.
        loss = xp.where(valid, loss, np.nan)
        backprop = xp.where(valid[:, None], backprop, np.nan)
    return narrow(loss, features.dtype), narrow(backprop, features.dtype)


def _is_zeros(grad: Tensor | None) -> bool:
    """True for the zeros that stand in for the gradient of an output that has none."""
    if grad is None or grad.op.type == "ZerosLike":
        return True
    if grad.op.type not in ("Const", "Fill"):
        return False
    value = constant_value(grad if grad.op.type == "Const" else grad.op.inputs[1])
    return value is not None and not value.any()


def _through_softmax(logits: Tensor, grad: Tensor) -> Tensor:
    """The gradient for ``logits`` from that of their softmax: the second-order part."""
    p = softmax(logits)
    return (grad - reduce_sum(grad * p, 1, keepdims=True)) * p


@softmax_cross_entropy_op.gradient
def _(op, grad_loss, grad_backprop):
    features, labels = op.inputs
    column = expand_dims(grad_loss, -1)
    features_grad = column * op.outputs[1]
    labels_grad = -column * log_softmax(features)
    if not _is_zeros(grad_backprop):
        features_grad += _through_softmax(features, grad_backprop)
        labels_grad -= grad_backprop
    return unbroadcast(features, labels, features_grad, labels_grad)


@sparse_softmax_cross_entropy_op.gradient
def _(op, grad_loss, grad_backprop):
    grad = expand_dims(grad_loss, -1) * op.outputs[1]
    if not _is_zeros(grad_backprop):
        grad += _through_softmax(op.inputs[0], grad_backprop)
    return [grad, None]


# Functions ------------------------------------------------------------------------------------


def _named_arguments_only(sentinel: Any, function: str, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise ValueError(
            f"Only call {function} with named arguments: {function}(labels=..., logits=...). "
            "Their order has changed between versions."
        )
    if labels is None or logits is None:
        raise ValueError(f"{function} needs both labels and logits.")


def _in_single_precision(logits: Tensor) -> Tensor:
    return cast(logits, dtypes.float32) if logits.dtype.base_dtype.size == 2 else logits


def _flattened(tensor: Tensor, dims: Dims) -> Tensor:
    """``tensor`` as a matrix with its last axis kept."""
    if dims is not None and len(dims) == 2:
        return tensor
    if dims is not None and dims[-1]:
        return reshape(tensor, [-1, dims[-1]])
    size = shape(tensor)[-1]
    return reshape(tensor, [-1, size])


def _unflattened(loss: Tensor, like: Tensor, rank_is: int) -> Tensor:
    """The vector ``loss`` in the shape of ``like`` without its last axis."""
    dims = like.dims
    if dims is not None and len(dims) == rank_is:
        return loss
    if dims is not None and dims[:-1].count(None) <= 1:
        return reshape(loss, [-1 if d is None else d for d in dims[:-1]])
    return reshape(loss, shape(like)[:-1])


def softmax_cross_entropy_with_logits_v2(
    labels: Any,
    logits: Any,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """The cross-entropy between ``labels`` (distributions over ``axis``) and softmax(``logits``).

    The result has the shape of ``logits`` without ``axis``. Gradients flow to the labels too;
    wrap them in ``tf.stop_gradient`` where that is not meant. ``dim`` is the old name of ``axis``.

    Example:
        >>> loss = tf.nn.softmax_cross_entropy_with_logits_v2(
        ...     labels=[[0.0, 1.0]], logits=[[2.0, 2.0]])
        >>> tf.Session().run(loss)
        array([0.6931472], dtype=float32)
    """
    _named_arguments_only(None, "softmax_cross_entropy_with_logits_v2", labels, logits)
    axis = one_of("axis", axis, "dim", dim)
    axis = -1 if axis is None else int(axis)
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        given = convert_to_tensor(logits, name="logits")
        logits = _in_single_precision(given)
        labels = convert_to_tensor(labels, name="labels", dtype_hint=logits.dtype)
        if labels.dtype.base_dtype is not logits.dtype.base_dtype:
            labels = cast(labels, logits.dtype.base_dtype)
        start = logits.graph._last_id
        order = swap_with_last(logits, axis)
        if order is not None:
            rank = len(order)
            kept = [i for i in range(rank) if i != axis % rank]
            logits = transpose(logits, [*kept, axis % rank])
            labels = transpose(labels, [*kept, axis % rank])
        loss, _ = softmax_cross_entropy_op(
            _flattened(logits, logits.dims), _flattened(labels, labels.dims), name=scope
        )
        loss = _unflattened(loss, logits, 2)
        if order is None:
            skip_op_ids(start + 31 - logits.graph._last_id)  # it flattens whatever the rank
        return loss if logits is given or loss.dtype is given.dtype else cast(loss, given.dtype)


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Like :func:`softmax_cross_entropy_with_logits_v2`, with the labels taken as constants.

    Example:
        >>> loss = tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y)
    """
    _named_arguments_only(_sentinel, "softmax_cross_entropy_with_logits", labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels", dtype_hint=logits.dtype)
        labels = stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(
            labels, logits, axis=dim if axis is None else axis, name=scope
        )


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    name: str | None = None,
) -> Tensor:
    """The cross-entropy between class numbers ``labels`` and softmax(``logits``).

    ``labels`` has the shape of ``logits`` without the last axis; each is in [0, classes). Another
    label is an error on a CPU; on an accelerator its loss and gradients are NaN.

    Example:
        >>> loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
        ...     labels=[1], logits=[[2.0, 2.0]])
        >>> tf.Session().run(loss)
        array([0.6931472], dtype=float32)
    """
    _named_arguments_only(_sentinel, "sparse_softmax_cross_entropy_with_logits", labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels)
        given = convert_to_tensor(logits)
        start = given.graph._last_id
        logits = _in_single_precision(given)
        _check_sparse_labels(labels.dims, given.dims)
        flattens = given.dims is None or len(given.dims) != 2
        flat = reshape(_of_one_rank_less(labels, given), [-1]) if flattens else labels
        loss, _ = sparse_softmax_cross_entropy_op(_flattened(logits, logits.dims), flat)
        if flattens:
            loss = reshape(loss, shape(labels))
            loss.set_shape(labels.dims)
        skip_op_ids(start + (18 if flattens else 2) - given.graph._last_id)
        return loss if logits is given else cast(loss, given.dtype)


def _of_one_rank_less(labels: Tensor, logits: Tensor) -> Tensor:
    """``labels``, whose rank is checked when the step runs where it is not known before."""
    if labels.dims is not None and logits.dims is not None:
        return labels
    from runnel.ops.assertions import assert_equal

    message = "The rank of labels should equal the rank of logits minus 1"
    check = assert_equal(rank(labels), rank(logits) - 1, message=message)
    with labels.graph.control_dependencies([check]):
        return identity(labels)


def _check_sparse_labels(labels: Dims, logits: Dims) -> None:
    if logits == ():
        raise ValueError("logits cannot be a scalar: their last dimension holds the classes.")
    if logits is None or labels is None:
        return
    if len(labels) != len(logits) - 1:
        raise ValueError(
            f"Rank mismatch: the rank of labels ({len(labels)}) should equal the rank of logits "
            f"minus 1 ({len(logits) - 1}). labels hold class numbers; for one-hot labels use "
            "softmax_cross_entropy_with_logits_v2."
        )
    if not compatible_dims(labels, logits[:-1]):
        raise ValueError(
            f"Shape mismatch: the shape of labels {format_dims(labels)} should equal the shape of "
            f"logits {format_dims(logits)} except for the last dimension."
        )
