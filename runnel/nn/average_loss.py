"""Losses of examples averaged over the batch of all replicas, of which runnel's graphs have one.

Data-parallel training averages gradients between workers itself (``SyncReplicasOptimizer``,
``CollectiveOptimizer``), so each worker's loss is that of its own batch.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, shape, squeeze
from runnel.ops.casting import cast
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.zero_safe import div_no_nan


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the weighted losses by the number of examples: 0 without any.

    ``sample_weight`` is one number, or has the losses' shape, or one dimension (of size 1) more or
    one less. ``global_batch_size`` is the number of rows unless given.

    Example:
        >>> tf.nn.compute_average_loss([1.0, 3.0], sample_weight=[1.0, 0.5])  # 1.25
    """
    losses = convert_to_tensor(per_example_loss, name="per_example_loss")
    if losses.dims == ():
        raise ValueError(
            f"per_example_loss must have a loss for each example, but {losses.name!r} is a scalar"
        )
    kind = losses.dtype.base_dtype
    if sample_weight is not None:
        weights = convert_to_tensor(sample_weight, name="sample_weight")
        # TensorFlow weighs in single precision, whatever the type of the losses.
        losses = cast(cast(losses, float32) * _aligned(cast(weights, float32), losses), kind)
    size = shape(losses)[0] if global_batch_size is None else global_batch_size
    return div_no_nan(reduce_sum(losses), cast(size, kind))


def _aligned(weights: Tensor, losses: Tensor) -> Tensor:
    """``weights`` with the rank of ``losses``, where both ranks are known."""
    if weights.dims is None or losses.dims is None or not weights.dims:
        return weights
    more = len(weights.dims) - len(losses.dims)
    if more == 1:
        return squeeze(weights, [-1])
    return expand_dims(weights, -1) if more == -1 else weights


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of ``regularization_loss``, for one replica.

    Example:
        >>> tf.nn.scale_regularization_loss(tf.losses.get_regularization_losses())
    """
    return reduce_sum(regularization_loss)
