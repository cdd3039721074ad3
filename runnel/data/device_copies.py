"""Elements that are on the device of the steps that use them before those ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.data.dataset import AUTOTUNE, Dataset
from runnel.graph.device import parsed_device
from runnel.ops.data.dataset_ops import copy_op


def copy_to_device(
    target_device: str, source_device: str = "/cpu:0"
) -> Callable[[Dataset], Dataset]:
    """The same elements on ``target_device``, but for what only the host can hold: strings.

    Elements are made where the dataset is, on a CPU: ``source_device`` can only say that again.
    """
    target = parsed_device(target_device).to_string()
    if parsed_device(source_device).device_type not in (None, "CPU"):
        raise ValueError(f"source_device is {source_device!r}, but datasets are on CPUs")
    return lambda dataset: dataset._with(copy_op, target_device=target)


def prefetch_to_device(device: str, buffer_size: Any = None) -> Callable[[Dataset], Dataset]:
    """The same elements, made by a thread and sent to ``device`` ahead of need.

    It comes last: a transformation that follows takes the elements back to the host.

    Example:
        >>> dataset = dataset.batch(32).apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
        >>> images, labels = dataset.make_initializable_iterator().get_next()
    """
    copied = copy_to_device(device)
    ahead = AUTOTUNE if buffer_size is None else buffer_size
    return lambda dataset: dataset.apply(copied).prefetch(ahead)
