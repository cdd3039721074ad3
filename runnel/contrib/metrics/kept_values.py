"""A metric that keeps all values, for those that need them at the end."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.metrics.gathering import Metric, collected, metric_variable
from runnel.ops.array_shape import shape
from runnel.ops.assign import assign
from runnel.ops.control import identity
from runnel.ops.joining import concat
from runnel.ops.transposition import transpose
from runnel.variables.variable_scope import variable_scope


def streaming_concat(
    values: Any,
    axis: int = 0,
    max_size: int | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """All values, joined along ``axis``; with ``max_size`` only the first so many.

    The other dimensions must be known.

    Example:
        >>> everything, update = tf.contrib.metrics.streaming_concat(predictions)
    """
    with variable_scope(name, "streaming_concat", (values,)):
        values = convert_to_tensor(values)
        rank = values.shape.rank
        if rank is None:
            raise ValueError("`values` must have known rank")
        if not -rank <= axis < rank:
            raise ValueError(f"`axis` = {axis} is not in [{-rank}, {rank})")
        axis %= rank
        order = [axis, *(i for i in range(rank) if i != axis)]
        fixed = [values.shape[i].value for i in order[1:]]
        if None in fixed:
            raise ValueError(
                f"all dimensions of `values` other than the dimension to concatenate along must "
                f"have statically known size; its shape is {values.shape}"
            )
        kept = metric_variable([0, *fixed], values.dtype.base_dtype, "array", validate_shape=False)
        there = identity(kept)
        there.set_shape([None, *fixed])
        joined = concat([there, transpose(values, order)], 0)[:max_size]
        update = assign(kept, joined, validate_shape=False)
        back = [order.index(i) for i in range(rank)]
        value = transpose(there, back, name="concat")
        return collected(value, shape(update)[0], metrics_collections, updates_collections)
