"""Losses that are likelihoods of binary and count data, as elementwise graph code."""

from __future__ import annotations

import math
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.ops.activations import softplus
from runnel.ops.arithmetic import add
from runnel.ops.comparison import greater_equal, less_equal, logical_and
from runnel.ops.elementwise import exp, log, log1p
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.reduce_functions import one_of
from runnel.ops.selection import where


def _same_shape(a: Tensor, b: Tensor, names: str) -> None:
    if not compatible_dims(a.dims, b.dims):
        given = f"{format_dims(a.dims)} and {format_dims(b.dims)}"
        raise ValueError(f"{names} must have the same shape, not {given}.")


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    name: str | None = None,
) -> Tensor:
    """The cross-entropy between probabilities ``labels`` and sigmoid(``logits``), elementwise.

    Computed as ``max(x, 0) - x * z + log(1 + exp(-|x|))``, which neither overflows nor loses
    the small losses of confident logits.

    Example:
        >>> loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, 100.0])
        >>> tf.Session().run(loss)
        array([  0.6931472, 100.       ], dtype=float32)
    """
    if _sentinel is not None or labels is None or logits is None:
        raise ValueError(
            "Call sigmoid_cross_entropy_with_logits with named arguments: labels=..., logits=..."
        )
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x = convert_to_tensor(logits, name="logits")
        z = convert_to_tensor(labels, name="labels", dtype_hint=x.dtype)
        _same_shape(x, z, "logits and labels")
        # Selections, not relu and abs: at 0 their gradients add up to the true one, 0.5 - z.
        zeros = zeros_like(x)
        positive = greater_equal(x, zeros)
        upper = where(positive, x, zeros)
        negative_magnitude = where(positive, -x, x)
        return add(upper - x * z, log1p(exp(negative_magnitude)), name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Like the sigmoid cross-entropy, with the loss of positive labels times ``pos_weight``.

    ``targets`` is the old name of ``labels``.

    Example:
        >>> loss = tf.nn.weighted_cross_entropy_with_logits([1.0], [0.0], pos_weight=2.0)
        >>> tf.Session().run(loss)
        array([1.3862944], dtype=float32)
    """
    labels = one_of("labels", labels, "targets", targets)
    if labels is None or logits is None or pos_weight is None:
        raise ValueError("weighted_cross_entropy_with_logits needs labels, logits and pos_weight.")
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x = convert_to_tensor(logits, name="logits")
        z = convert_to_tensor(labels, name="labels", dtype_hint=x.dtype)
        _same_shape(x, z, "logits and labels")
        weight = 1 + (convert_to_tensor(pos_weight, x.dtype.base_dtype, "pos_weight") - 1) * z
        return add((1 - z) * x, weight * softplus(-x), name=scope)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Minus the log-likelihood of counts ``targets`` when the log of their rate is ``log_input``.

    Up to a constant; ``compute_full_loss=True`` adds Stirling's approximation of it.

    Example:
        >>> tf.Session().run(tf.nn.log_poisson_loss([2.0], [0.0]))
        array([1.], dtype=float32)
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        c = convert_to_tensor(log_input, name="log_input")
        z = convert_to_tensor(targets, name="targets", dtype_hint=c.dtype)
        _same_shape(c, z, "log_input and targets")
        loss = exp(c) - c * z
        if not compute_full_loss:
            return loss
        stirling = z * log(z) - z + 0.5 * log(2 * math.pi * z)
        zeros = zeros_like(z)
        # The approximation is for counts above 1; log(0!) and log(1!) are 0.
        small = logical_and(greater_equal(z, zeros), less_equal(z, ones_like(z)))
        return loss + where(small, zeros, stirling)
