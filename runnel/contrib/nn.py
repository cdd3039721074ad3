"""``tf.contrib.nn``: dropout for self-normalising networks, and losses with earlier arguments."""

from __future__ import annotations

from typing import Any

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.nn import conv1d_transpose
from runnel.ops.array_shape import shape
from runnel.ops.cross_entropy import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from runnel.ops.rounding import floor
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.sampling.random import random_uniform

__all__ = [
    "alpha_dropout",
    "conv1d_transpose",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
]

_LEAST = -1.7580993408473766
"""What ``tf.nn.selu`` gives for very negative numbers."""


def alpha_dropout(
    x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: Any = None
) -> Tensor:
    """Sets elements to the least value of ``tf.nn.selu``, and keeps the mean and the variance.

    Klambauer et al., *Self-Normalizing Neural Networks*, 2017.

    Example:
        >>> hidden = tf.contrib.nn.alpha_dropout(tf.nn.selu(net), keep_prob=0.95)
    """
    with name_scope(name, "alpha_dropout", [x]):
        given = convert_to_tensor(x)
        if isinstance(keep_prob, float | int) and not 0 < keep_prob <= 1.0:
            raise ValueError(
                f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob}"
            )
        keep = convert_to_tensor(keep_prob, given.dtype.base_dtype)
        if constant_value(keep) == 1:
            return given
        wanted = shape(given) if noise_shape is None else noise_shape
        drawn = random_uniform(wanted, seed=seed, dtype=given.dtype.base_dtype)
        kept = floor(keep + drawn)
        mixed = given * kept + _LEAST * (1.0 - kept)
        scale = (keep + _LEAST**2 * keep * (1.0 - keep)) ** -0.5
        found = scale * mixed - scale * _LEAST * (1.0 - keep)
        found.set_shape(given.shape)
        return found


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Tensor:
    """The loss under the order of arguments that it had before TensorFlow 1.0."""
    return softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, axis=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """The loss under the order of arguments that it had before TensorFlow 1.0."""
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Tensor:
    """The loss under the order of arguments that it had before TensorFlow 1.0."""
    return sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def __dir__() -> list[str]:
    return __all__
