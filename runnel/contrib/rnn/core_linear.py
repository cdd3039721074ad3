"""``_linear``: the linear map with which programs of TensorFlow 1 write cells of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.rnn.linear import linear

__all__ = ["_linear"]


def _linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Any:
    """The matrices ``args``, joined, times ``kernel``, plus ``bias`` where that is asked for.

    ``kernel`` and ``bias`` are variables of the current scope; ``bias`` begins with zeros.
    """
    if args is None or (isinstance(args, Sequence) and not args):
        raise ValueError("`args` must be specified")
    values = list(args) if isinstance(args, (list, tuple)) else [args]
    return linear(values, output_size, bias, bias_initializer, kernel_initializer)
