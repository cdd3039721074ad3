"""The time of day as a tensor."""

from __future__ import annotations

import time

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op

# It waits for nothing, but as for what may, whatever depends on it is done after it: a variable
# that is read after the time was taken is read in the segment that changes it.
timestamp_op = register_op("Timestamp", outputs="ts: float64", blocking=True, differentiable=False)
timestamp_op.shape(lambda: ())


@timestamp_op.kernel
def _(xp, *, waiter):
    return (np.float64(time.time()),)


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970 on the task that runs it, when it runs.

    Example:
        >>> tf.Session().run(tf.timestamp())
        np.float64(1478300400.123456)
    """
    return timestamp_op(name=name)
